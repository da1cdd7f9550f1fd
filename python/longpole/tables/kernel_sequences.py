"""Table `kernels` by sequence: frequent sequences of GPU activities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longpole.engine.windows import window_of
from longpole.rows.selection import matching
from longpole.tables.activities import activities
from longpole.tables.catalogue import view
from longpole.tables.needs import ACTIVITIES, LAUNCHES, OPERATORS
from longpole.trace import sweeps
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace


class KernelSequenceRow(Row):
    """All operators with the same name that ran the same kernels."""

    operator_name: str | None
    kernels: list[str]
    """Names in order of start."""
    count: int
    """Number of operators."""
    duration_ns: int
    """Time of all their activities inside the window."""
    operator_ns: int | None
    """Time of the operators."""


@view(
    KernelSequenceRow,
    needs=(ACTIVITIES, LAUNCHES, OPERATORS),
    empty="No operator launched three GPU activities in it.",
)
def kernel_sequences(
    trace: Trace,
    window: Window | None = None,
    *,
    where: pl.Expr | str | None = None,
    min_length: int = 3,
) -> pl.DataFrame:
    """Group operators by the sequence of GPU activities launched below them.

    Of nested operators the outermost is used, so that no activity counts twice.

    Parameters
    ----------
    where
        A condition on operators, by `name`, `thread`, `start_ns` and the other columns of
        `Trace.events`, such as `"name LIKE '%linear%'"`; by default all.
    min_length
        Minimum number of activities in a sequence.

    Returns
    -------
    DataFrame
        A row for each operator and sequence, the most frequent first.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().operator("aten::linear", (0, 20)).operator("aten::mm", (1, 19))
    >>> trace = builder.launch("gemm", call=(5, 10), work=(12, 60)).read()
    >>> kernel_sequences(trace, min_length=1).drop("kernels").row(0)
    ('aten::linear', 1, 48000, 20000)
    """
    window = window_of(trace, window)
    columns = ["event", "kind", "name", "duration_ns"]
    events = trace.events.select(columns) if where is None else trace.events
    operators = matching(events.filter(pl.col("kind") == "operator"), where)
    below = _below(trace, activities(trace, window), operators)
    launched = (
        below.sort("start_ns", "event")
        .group_by("around", maintain_order=True)
        .agg(
            pl.col("operator_name", "operator_ns").first(),
            kernels=pl.col("name"),
            inside_ns=pl.col("inside_ns").sum(),
        )
        .filter(pl.col("kernels").list.len() >= min_length)
    )
    return by_sequence(launched, operator_ns=pl.col("operator_ns").sum())


def by_sequence(launched: pl.DataFrame, **figures: pl.Expr) -> pl.DataFrame:
    """Group operators by name and `kernels`, most frequent first."""
    return (
        launched.with_columns(number=sweeps.sequences(launched["kernels"]))
        .group_by("operator_name", "number", maintain_order=True)
        .agg(
            pl.col("kernels").first().cast(pl.List(pl.String)),
            count=pl.len().cast(pl.Int64),
            duration_ns=pl.col("inside_ns").sum(),
            **figures,
        )
        .drop("number")
        .with_columns(
            pl.col("operator_name").cast(pl.String), key=pl.col("kernels").list.join("\n")
        )
        .sort("count", "duration_ns", "operator_name", "key", descending=[True, True, False, False])
        .drop("key")
    )


def _below(trace: Trace, found: pl.DataFrame, operators: pl.DataFrame) -> pl.DataFrame:
    """Return activities with the outermost of the given operators around the call."""
    start = pl.coalesce("call", "operator").alias("start")
    found = found.select("event", "name", "start_ns", "inside_ns", start)
    around = sweeps.around(trace, found["start"], operators["event"], "outermost")
    below = found.with_columns(around).filter(around.is_not_null())
    # The number of an event is its row in `events`.
    told = trace.events.select(operator_name="name", operator_ns="duration_ns")
    return below.hstack(told[below["around"]])
