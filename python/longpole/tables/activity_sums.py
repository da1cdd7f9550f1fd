"""Sums of GPU activities by their names and other columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.rows.frames import typed
from longpole.tables.activities import WorkClass  # noqa: TC001 (its row is read)
from longpole.tables.statistics import DurationFigures, described

if TYPE_CHECKING:
    from longpole.engine.windows import Window

SHORT_NS: Final = 10_000
"""Activities shorter than this are short: a launch takes about as long."""


class ActivitySum(DurationFigures):
    """All GPU activities with the same name."""

    kind: str
    work_class: WorkClass | None
    name: str
    count: int
    duration_ns: int
    """Sum of the parts inside the window. Concurrent activities each count in full."""
    window_share: float | None
    """Share of the window; concurrent activities can sum to more than 100 %."""
    n_short: int | None
    """Number of those that took less than 10 us, about as long as a launch."""
    longest_event: int | None
    """Null for operators of a window without kernels."""


def by_keys(found: pl.DataFrame, window: Window | None, *keys: str) -> pl.DataFrame:
    """Group the activities of a window, largest sum first; ties are sorted by the keys."""
    span_ns = 0 if window is None else window.duration_ns
    inside_ns = pl.col("inside_ns")
    grouped = found.group_by(*keys).agg(
        count=pl.len().cast(pl.Int64),
        duration_ns=inside_ns.sum(),
        inside_ns=inside_ns,
        n_short=pl.col("duration_ns").is_between(0, SHORT_NS, closed="left").sum().cast(pl.Int64),
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
            *(*keys, "count", "duration_ns", "window_share", *figures.columns),
            *("n_short", "longest_event"),
        )
    )
