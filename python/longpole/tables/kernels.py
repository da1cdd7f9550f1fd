"""Table `kernels`: GPU activities of a window by name: count and time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired

import polars as pl

from longpole.engine.windows import window_of
from longpole.rows.frames import typed
from longpole.tables.activities import WorkClass, activities
from longpole.tables.catalogue import table
from longpole.tables.needs import ACTIVITIES
from longpole.tables.statistics import DurationFigures, described
from longpole.words.wording import operator_name

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

__all__ = ["KernelRow", "kernels"]


class KernelRow(DurationFigures):
    """All GPU activities with the same name."""

    kind: str
    work_class: WorkClass
    name: str
    count: int
    duration_ns: int
    """Sum of the parts inside the window. Concurrent activities each count in full."""
    window_share: float | None
    """Share of the window; concurrent activities can sum to more than 100 %."""
    longest_event: int
    operator: NotRequired[str | None]
    """Innermost operator that launched the longest one, with the sizes of its inputs."""


@table(
    KernelRow,
    needs_arguments=True,
    needs=(ACTIVITIES,),
    empty="No GPU activity ran in it.",
)
def kernels(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """Rank kernels, memcpys and memsets of a window by name and total time, longest first.

    Parameters
    ----------
    where
        A condition on the columns of `activities`, such as `"kind = 'kernel'"`.

    Returns
    -------
    DataFrame
        A row for each name.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 90))
    >>> trace = builder.launch("add", call=(10, 12), work=(90, 100)).read()
    >>> kernels(trace).select("name", "count", "duration_ns", "window_share").rows()
    [('gemm', 1, 80000, 0.8), ('add', 1, 10000, 0.1)]
    """
    window = window_of(trace, window)
    found = activities(trace, window, where=where)
    rows = by_keys(found, window, "kind", "work_class", "name")
    launched = trace.core.operators_of(rows["longest_event"].to_list())
    operators = [operator_name(*operator[1:]) if operator else None for operator in launched]
    return rows.with_columns(operator=pl.Series(operators, dtype=pl.String))


def by_keys(found: pl.DataFrame, window: Window | None, *keys: str) -> pl.DataFrame:
    """Group the activities of a window, largest sum first; ties are sorted by the keys."""
    span_ns = 0 if window is None else window.duration_ns
    inside_ns = pl.col("inside_ns")
    grouped = found.group_by(*keys).agg(
        count=pl.len().cast(pl.Int64),
        duration_ns=inside_ns.sum(),
        inside_ns=inside_ns,
        # Activities are in the order of their numbers: of equally long ones, the first is used.
        longest_event=pl.col("event").get(inside_ns.arg_max()),
    )
    figures = described("inside_ns", grouped["inside_ns"])
    grouped = (
        pl.concat([grouped.drop("inside_ns"), figures], how="horizontal")
        .with_columns(pl.col(pl.Categorical).cast(pl.String))
        .with_columns(window_share=pl.col("duration_ns") / max(span_ns, 1))
        .sort("duration_ns", *keys, descending=[True, *(False for _ in keys)])
    )
    return typed(
        grouped.select(
            *keys, "count", "duration_ns", "window_share", *figures.columns, "longest_event"
        )
    )
