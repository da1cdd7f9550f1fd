"""Where the time of a step went, on one page.

The page holds what is known and nothing else: a figure that the trace does not give is
None, with the reason beside it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from longpole.analyses.blocking import BlockingCall, blocking_calls
from longpole.analyses.devices import DeviceTime, device_times
from longpole.analyses.ranking import (
    NameTime,
    OperatorTime,
    Ranking,
    top_kernels,
    top_operators,
    within,
)
from longpole.analyses.waiting import Answer, answer
from longpole.analyses.window import Window, choose_window

if TYPE_CHECKING:
    from longpole.trace import Trace

__all__ = ["Summary", "Unlinked", "summary"]


@dataclass(frozen=True, slots=True)
class Unlinked:
    """Work on devices within the window whose launching call is not known."""

    n_device_work: int
    n_unlinked: int

    @property
    def share(self) -> float | None:
        """Unlinked pieces of work among all; None where there is none."""
        return self.n_unlinked / self.n_device_work if self.n_device_work else None


@dataclass(frozen=True, slots=True)
class Summary:
    """Where the time of one window went."""

    window: Window
    answer: Answer
    devices: tuple[DeviceTime, ...]
    kernels: Ranking[NameTime]
    operators: Ranking[OperatorTime]
    blocking_calls: tuple[BlockingCall, ...]
    unlinked: Unlinked

    def __str__(self) -> str:
        return self.answer.sentence

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values, in a fixed order."""
        plain = asdict(self)
        plain["window"]["span_ns"] = self.window.span_ns
        plain["unlinked"]["share"] = self.unlinked.share
        for ranking in ("kernels", "operators"):
            plain[ranking] = plain[ranking]["rows"]
        return plain


def summary(trace: Trace, *, step: int | None = None, top: int = 10) -> Summary | None:
    """Say where the time of a step went, and what it waited for most.

    Parameters
    ----------
    trace
        The trace.
    step
        The number of a `ProfilerStep`; by default the longest complete one, and the
        whole trace where it marks none.
    top
        How many kernels and operators to list.

    Returns
    -------
    Summary or None
        None where nothing in the trace has a duration.

    Raises
    ------
    ValueError
        There is no such step.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
    >>> summary(trace).answer.sentence
    'Device 0 computes 90.0 % of the trace (90.0 µs of 100 µs): the trace waits for its \
kernels, most of all gemm (90.0 %, 1 kernel).'
    """
    window = choose_window(trace, step)
    if window is None:
        return None
    devices = device_times(trace, window)
    return Summary(
        window=window,
        answer=answer(trace, window, devices),
        devices=devices,
        kernels=top_kernels(trace, window, top),
        operators=top_operators(trace, window, top),
        blocking_calls=blocking_calls(trace, window),
        unlinked=_unlinked(trace, window),
    )


def _unlinked(trace: Trace, window: Window) -> Unlinked:
    work = within(trace.events.join(trace.launches, on="event"), window)
    return Unlinked(work.height, work["call"].null_count())
