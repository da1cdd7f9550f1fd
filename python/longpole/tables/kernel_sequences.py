"""Table `kernels` by sequence: frequent sequences of GPU activities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longpole.engine.windows import window_of
from longpole.rows.selection import matching
from longpole.tables.activities import own_activities
from longpole.tables.catalogue import view
from longpole.tables.needs import ACTIVITIES
from longpole.tables.repeated_runs import repeated_runs
from longpole.trace import sweeps
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace


class KernelSequenceRow(Row):
    """All operators with the same name that ran the same kernels, or a repeated run of a stream."""

    operator_name: str | None
    """Null for consecutive activities of a stream that several operators launched."""
    kernels: list[str]
    """Names in order of start."""
    count: int
    """Number of operators, or of occurrences that do not overlap."""
    duration_ns: int
    """Time of all their activities inside the window."""
    operator_ns: int | None
    """Time of the operators; null for a sequence that several operators launched."""


@view(
    KernelSequenceRow,
    needs=(ACTIVITIES,),
    empty="No operator launched three GPU activities in it, and no three in a row repeat.",
)
def kernel_sequences(
    trace: Trace,
    window: Window | None = None,
    *,
    where: pl.Expr | str | None = None,
    min_length: int = 3,
) -> pl.DataFrame:
    """Rank sequences of GPU activities: below one operator, and across operators of a stream.

    Of nested operators the outermost is used. Sequences across operators repeat: each is extended
    as long as the activity before it, or after it, is always the same. An activity may be part of
    several sequences.

    Parameters
    ----------
    where
        A condition on operators, by `name`, `thread`, `start_ns` and the other columns of
        `Trace.events`, such as `"name LIKE '%linear%'"`; by default all, and also
        activities that no operator launched.
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
    found = _with_operators(trace, own_activities(trace, window), operators)
    below = found.filter(pl.col("around").is_not_null())
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
    single = by_sequence(launched, operator_ns=pl.col("operator_ns").sum())
    several = repeated_runs(found if where is None else below, max(min_length, 1))
    several = several.with_columns(pl.col("kernels").cast(pl.List(pl.String)))
    return _ranked(pl.concat([single, several], how="diagonal"))


def by_sequence(launched: pl.DataFrame, **figures: pl.Expr) -> pl.DataFrame:
    """Group operators by name and `kernels`, most frequent first."""
    return _ranked(
        launched.with_columns(number=sweeps.sequences(launched["kernels"]))
        .group_by("operator_name", "number", maintain_order=True)
        .agg(
            pl.col("kernels").first().cast(pl.List(pl.String)),
            count=pl.len().cast(pl.Int64),
            duration_ns=pl.col("inside_ns").sum(),
            **figures,
        )
        .drop("number")
        .with_columns(pl.col("operator_name").cast(pl.String))
    )


def _ranked(rows: pl.DataFrame) -> pl.DataFrame:
    key = pl.col("kernels").list.join("\n")
    order = ("count", "duration_ns", "operator_name", key)
    return rows.sort(*order, descending=[True, True, False, False])


def _with_operators(trace: Trace, found: pl.DataFrame, operators: pl.DataFrame) -> pl.DataFrame:
    """Add the outermost of the given operators around the call, its name and its time."""
    start = pl.coalesce("call", "operator").alias("start")
    found = found.select("event", "name", "device", "stream", "start_ns", "inside_ns", start)
    around = sweeps.around(trace, found["start"], operators["event"], "outermost")
    # The number of an event is its row in `events`.
    told = trace.events.select(operator_name="name", operator_ns="duration_ns")
    told = told.with_row_index("around").with_columns(pl.col("around").cast(around.dtype))
    return found.with_columns(around).join(told, on="around", how="left", maintain_order="left")
