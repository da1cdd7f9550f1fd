"""Lists runtime API calls that waited for a device, and launches without their activity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.engine.windows import window_of

if TYPE_CHECKING:
    import polars as pl

    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_WHY: Final = {
    "role": "it waits for the device",
    "copy_ended": "it returned after its copy had ended",
    "waited": "it waited for a GPU activity",
}


@dataclass(frozen=True, slots=True)
class NameTime:
    """All events with the same name, and the longest of them. Concurrent events count twice."""

    name: str | None
    count: int
    duration_ns: int
    longest_ns: int
    longest_event: int


@dataclass(frozen=True, slots=True)
class BlockingCall(NameTime):
    """All blocking calls with the same name within a window, on all threads."""

    why: str


def blocking_calls(trace: Trace, window: Window | None = None) -> tuple[BlockingCall, ...]:
    """List the blocking calls of a window, longest total first.

    See `Trace.blocking_calls` for which calls count as blocking, and why.
    """
    window = window_of(trace, window)
    if window is None:
        return ()
    rows = trace.core.blocking_by_name(*window.on_host.span)
    return tuple(BlockingCall(*figures, _WHY[reason]) for figures, reason in rows)


def launches_without_work(trace: Trace) -> pl.DataFrame:
    """List the launches of kernels and CUDA graphs whose GPU activity is not in the trace.

    Calls that copy or set memory are not listed: many have no GPU activity.
    """
    import polars as pl

    lost = pl.Series(trace.core.launches_without_work(), dtype=pl.UInt32)
    return trace.events.filter(pl.col("event").is_in(lost.implode()))
