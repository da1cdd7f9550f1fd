"""The thread that is busiest in a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longpole.windows import is_step

if TYPE_CHECKING:
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["busiest_lane"]


def busiest_lane(trace: Trace, window: Window) -> pl.DataFrame:
    """Find the thread that is longest in anything but a step: `lane`, `start_ns`, `end_ns`."""
    spans = trace.lanes.select("lane", **window.times())
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
