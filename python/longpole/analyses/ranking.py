"""The kernels and operators that took most of a window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import polars as pl

from longpole.analyses.window import is_step

if TYPE_CHECKING:
    from longpole.analyses.window import Window
    from longpole.trace import Trace

__all__ = [
    "NameTime",
    "OperatorTime",
    "Ranking",
    "busiest_lane",
    "by_name",
    "top_kernels",
    "top_operators",
    "within",
]

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Ranking(Generic[Row]):
    """The first rows of a list, and how many it has."""

    rows: tuple[Row, ...]
    n_total: int


@dataclass(frozen=True, slots=True)
class NameTime:
    """All events of one name, and the longest of them. What ran side by side counts twice."""

    name: str | None
    n_events: int
    total_ns: int
    longest_ns: int
    longest_event: int


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """All operators of one name within a window, by the time in which nothing inside them ran."""

    name: str | None
    n_events: int
    self_ns: int
    longest_self_ns: int
    longest_event: int


def within(events: pl.DataFrame, window: Window) -> pl.DataFrame:
    """Take the events that ran in a window, with their time in it as `inside_ns`."""
    start, end = pl.col("start_ns"), pl.col("start_ns") + pl.col("duration_ns")
    inside_ns = pl.min_horizontal(end, window.end_ns) - pl.max_horizontal(start, window.start_ns)
    is_inside = (pl.col("duration_ns") >= 0) & (start < window.end_ns) & (end > window.start_ns)
    return events.filter(is_inside).with_columns(inside_ns=inside_ns)


def top_kernels(trace: Trace, window: Window, top: int) -> Ranking[NameTime]:
    """Rank the kernels of a window by name and total time, the longest first."""
    kernels = trace.events.filter(pl.col("kind") == "kernel")
    ranked = by_name(within(kernels, window), "inside_ns")
    return Ranking(tuple(NameTime(*row) for row in ranked.head(top).iter_rows()), ranked.height)


def top_operators(trace: Trace, window: Window, top: int) -> Ranking[OperatorTime]:
    """Rank the operators of a window by name and self time, on all threads together."""
    operators = trace.events.filter(pl.col("kind") == "operator").select("event", "name")
    times = trace.times_within(_everywhere(trace, window)).join(operators, on="event")
    ranked = by_name(times, "self_ns")
    return Ranking(tuple(OperatorTime(*row) for row in ranked.head(top).iter_rows()), ranked.height)


def busiest_lane(trace: Trace, window: Window) -> pl.DataFrame:
    """Find the thread that is longest in anything but a step, as one span of its lane."""
    spans = _everywhere(trace, window)
    lanes = trace.events.filter(~is_step(trace)).select("event", "lane")
    busiest = (
        trace.times_within(spans)
        .join(lanes, on="event")
        .group_by("lane")
        .agg(pl.col("self_ns").sum())
        .sort("self_ns", "lane", descending=[True, False])
        .head(1)
    )
    return spans.join(busiest, on="lane", how="semi")


def _everywhere(trace: Trace, window: Window) -> pl.DataFrame:
    start_ns, end_ns = (pl.lit(time, pl.Int64) for time in (window.start_ns, window.end_ns))
    return trace.lanes.select("lane", start_ns=start_ns, end_ns=end_ns)


def by_name(events: pl.DataFrame, time: str) -> pl.DataFrame:
    """Group by name: `n_events`, `total_ns`, `longest_ns`, `longest_event`, the heaviest first.

    `time` is the column that is summed. Ties go by name, between events by row.
    """
    return (
        events.sort(time, "event", descending=[True, False])
        .group_by("name", maintain_order=True)
        .agg(
            n_events=pl.len(),
            total_ns=pl.col(time).sum(),
            longest_ns=pl.col(time).first(),
            longest_event=pl.col("event").first(),
        )
        .with_columns(pl.col("name").cast(pl.String))
        .sort("total_ns", "name", descending=[True, False])
    )
