"""The operators that took most of a window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from longpole.analyses.by_name import Ranking, by_name
from longpole.windows import choose_window

if TYPE_CHECKING:
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["OperatorTime", "operators"]


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """All operators of one name within a window, by the time in which nothing inside them ran."""

    name: str | None
    count: int
    self_ns: int
    longest_self_ns: int
    longest_event: int


def operators(
    trace: Trace, window: Window | None = None, *, top: int = 10
) -> Ranking[OperatorTime]:
    """Rank the operators of a window by name and self time, on all threads together.

    Parameters
    ----------
    trace
        The trace.
    window
        From `choose_window`; by default the window that it chooses without more.
    top
        How many names to list.
    """
    window = window or choose_window(trace)
    if window is None:
        return Ranking((), 0)
    named = trace.events.filter(pl.col("kind") == "operator").select("event", "name")
    spans = trace.lanes.select("lane", **window.times())
    ranked = by_name(trace.times_within(spans).join(named, on="event"), "self_ns")
    return Ranking(tuple(OperatorTime(*row) for row in ranked.head(top).iter_rows()), ranked.height)
