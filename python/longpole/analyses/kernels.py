"""Table `kernels`: the GPU activities of a window by name: how often, how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longpole.analyses.activities import activities
from longpole.analyses.statistics import described
from longpole.frames import typed
from longpole.windows import window_of

if TYPE_CHECKING:
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["kernels"]


def kernels(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """Rank kernels, memcpys and memsets of a window by name and total time, the longest first.

    Parameters
    ----------
    trace
        The trace.
    window
        From `choose_window`; by default the window that it chooses without more.
    where
        A condition on the columns of `activities`, such as `"kind = 'kernel'"`.

    Returns
    -------
    DataFrame
        A row for each name: `kind`, `work_class`, `name`, `count`, `duration_ns` (the sum;
        activities at the same time count twice), `window_share` (of the time of the window,
        so that activities at the same time sum to more than 100 %), `mean_ns`,
        `std_ns`, `min_ns`, `p25_ns`, `median_ns`, `p75_ns`, `max_ns`, and `longest_event`.
        Of an activity that lies across an end of the window, the part inside counts.

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
    return by_keys(found, window, "kind", "work_class", "name")


def by_keys(found: pl.DataFrame, window: Window | None, *keys: str) -> pl.DataFrame:
    """Group the activities of a window, the greatest sum first; ties go by the keys."""
    span_ns = 0 if window is None else window.duration_ns
    inside_ns = pl.col("inside_ns")
    grouped = found.group_by(*keys).agg(
        count=pl.len().cast(pl.Int64),
        duration_ns=inside_ns.sum(),
        inside_ns=inside_ns,
        # Activities stand in the order of their numbers: of equals the first is the longest.
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
