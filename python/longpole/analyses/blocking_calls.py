"""Calls in which a host thread waited for a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.analyses.by_name import NameTime
from longpole.windows import window_of

if TYPE_CHECKING:
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["BlockingCall", "blocking_calls"]

_WHY: Final = {
    "role": "it waits for the device",
    "copy_ended": "it returned after its copy had ended",
    "waited": "it waited for a GPU activity",
}


@dataclass(frozen=True, slots=True)
class BlockingCall(NameTime):
    """All blocking calls with one name within a window, on all threads."""

    why: str


def blocking_calls(trace: Trace, window: Window | None = None) -> tuple[BlockingCall, ...]:
    """List the blocking calls of a window, longest total first.

    See `Trace.blocking_calls` for which calls count as blocking, and why.
    """
    window = window_of(trace, window)
    if window is None:
        return ()
    rows = trace.core.blocking_by_name(window.start_ns, window.end_ns)
    return tuple(BlockingCall(*figures, _WHY[reason]) for figures, reason in rows)
