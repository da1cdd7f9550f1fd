"""Table `kernels` by operator: kernels that each operator launches, with launch delays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.tables.activities import own_activities
from longpole.tables.catalogue import view
from longpole.tables.kernel_sequences import by_sequence
from longpole.tables.legends import is_negative
from longpole.tables.needs import ACTIVITIES, LAUNCHES, OPERATORS
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_NEEDED: Final = (
    "event",
    "name",
    "start_ns",
    "inside_ns",
    "call_start_ns",
    "operator",
    "operator_name",
    "operator_start_ns",
)


class OperatorKernelRow(Row):
    """All operators with the same name that launched the same kernels."""

    operator_name: str | None
    """Innermost operator around the calls; null if unknown."""
    kernels: list[str]
    """Names in order of launch."""
    count: int
    """Number of operators."""
    duration_ns: int
    """Time of all their activities."""
    launch_delay_ns: float | None
    """Mean time from the start of the operator to the start of its first call."""
    start_delay_ns: float | None
    """Mean time from the start of the first call to the start of its activity; negative if clocks
    disagree."""


@view(
    OperatorKernelRow,
    needs=(ACTIVITIES, LAUNCHES, OPERATORS),
    empty="No operator launched a GPU activity in it.",
    legend=(
        (
            is_negative("start_delay_ns"),
            "A start_delay below zero: the clocks of host and device disagree.",
        ),
    ),
)
def operator_kernels(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """List for each operator the sequences of GPU activities that it launches.

    Parameters
    ----------
    where
        A condition on the columns of `activities`, such as
        `"operator_name LIKE 'aten::%' AND kind = 'kernel'"`.

    Returns
    -------
    DataFrame
        A row for each operator and sequence, the most frequent first.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().operator("aten::mm", (0, 20))
    >>> trace = builder.launch("gemm", call=(5, 10), work=(12, 60)).read()
    >>> operator_kernels(trace).drop("kernels").row(0)
    ('aten::mm', 1, 48000, 5000.0, 7000.0)
    """
    found = own_activities(trace, window, where=where).select(*_NEEDED)
    order = ("call_start_ns", "start_ns", "event")
    calls_ns = pl.col("call_start_ns") - pl.col("operator_start_ns")
    # Activities without an operator are not part of a sequence: each is its own.
    operator = pl.col("operator").cast(pl.Int64).fill_null(-1 - pl.col("event").cast(pl.Int64))
    launched = (
        found.sort(*order, nulls_last=True)
        .group_by(operator, maintain_order=True)
        .agg(
            pl.col("operator_name").first(),
            kernels=pl.col("name"),
            inside_ns=pl.col("inside_ns").sum(),
            launch_delay_ns=calls_ns.min(),
            start_delay_ns=(pl.col("start_ns") - pl.col("call_start_ns")).first(),
        )
    )
    return by_sequence(
        launched,
        launch_delay_ns=pl.col("launch_delay_ns").mean(),
        start_delay_ns=pl.col("start_delay_ns").mean(),
    )
