"""Calls in which a thread of the host waited for a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.analyses.by_name import NameTime
from longpole.windows import choose_window

if TYPE_CHECKING:
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["BlockingCall", "blocking_calls"]

_WHY: Final = {
    "role": "it waits for the device",
    "copy_ended": "it returned after its copy had ended",
    "waited": "it waited for work on the device",
}


@dataclass(frozen=True, slots=True)
class BlockingCall(NameTime):
    """All blocking calls of one name within a window, on all threads together."""

    why: str


def blocking_calls(trace: Trace, window: Window | None = None) -> tuple[BlockingCall, ...]:
    """List the blocking calls of a window, the longest in total first.

    Which calls those are, and why, `Trace.blocking_calls` says.
    """
    window = window or choose_window(trace)
    if window is None:
        return ()
    reason = pl.col("reason").cast(pl.String)
    blocking = trace.events.join(trace.blocking_calls, on="event").with_columns(
        pl.col("name").cast(pl.String), why=reason.replace_strict(_WHY, return_dtype=pl.String)
    )
    rows = (
        window.clip(blocking)
        .sort("inside_ns", "event", descending=[True, False])
        .group_by("name", maintain_order=True)
        .agg(
            count=pl.len(),
            duration_ns=pl.col("inside_ns").sum(),
            longest_ns=pl.col("inside_ns").first(),
            longest_event=pl.col("event").first(),
            why=pl.col("why").first(),
        )
        .sort("duration_ns", "name", descending=[True, False])
    )
    return tuple(BlockingCall(*row) for row in rows.iter_rows())
