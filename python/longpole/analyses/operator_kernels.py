"""Table `operator_kernels`: which kernels each operator launches, and with what delays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longpole.analyses.activities import activities

if TYPE_CHECKING:
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["operator_kernels"]


def operator_kernels(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """List for each operator the sequences of GPU activities that it launches.

    Parameters
    ----------
    trace
        The trace.
    window
        From `choose_window`; by default the window that it chooses without more.
    where
        A condition on the columns of `activities`, such as
        `"operator_name LIKE 'aten::%' AND kind = 'kernel'"`.

    Returns
    -------
    DataFrame
        A row for each operator and sequence, the most frequent first: `operator_name` (of the
        innermost operator around the calls; null where none is known), `kernels` (names in
        the order of the launches), `count` of operators, `duration_ns` of all their
        activities, `launch_delay_ns` (the mean from the start of the operator to that of its
        first call) and `start_delay_ns` (the mean from the start of a call to the start of
        the activity, negative where clocks disagree).

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().operator("aten::mm", (0, 20))
    >>> trace = builder.launch("gemm", call=(5, 10), work=(12, 60)).read()
    >>> operator_kernels(trace).drop("kernels").row(0)
    ('aten::mm', 1, 48000, 5000.0, 7000.0)
    """
    found = activities(trace, window, where=where)
    order = ("call_start_ns", "start_ns", "event")
    calls_ns = pl.col("call_start_ns") - pl.col("operator_start_ns")
    # Activities without an operator belong to no sequence: each is one of its own.
    alone = pl.when(pl.col("operator").is_null()).then(pl.col("event"))
    sequences = (
        found.sort(*order, nulls_last=True)
        .group_by("operator", alone.alias("alone"), maintain_order=True)
        .agg(
            pl.col("operator_name").first(),
            kernels=pl.col("name").cast(pl.String),
            inside_ns=pl.col("inside_ns").sum(),
            launch_delay_ns=calls_ns.min(),
            start_delay_ns=(pl.col("start_ns") - pl.col("call_start_ns")).mean(),
        )
    )
    return (
        sequences.with_columns(pl.col("operator_name").cast(pl.String))
        .group_by("operator_name", "kernels")
        .agg(
            count=pl.len().cast(pl.Int64),
            duration_ns=pl.col("inside_ns").sum(),
            launch_delay_ns=pl.col("launch_delay_ns").mean(),
            start_delay_ns=pl.col("start_delay_ns").mean(),
        )
        .with_columns(key=pl.col("kernels").list.join("\n"))
        .sort("count", "duration_ns", "operator_name", "key", descending=[True, True, False, False])
        .drop("key")
    )
