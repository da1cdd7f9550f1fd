"""Which call launched what, and the work of one stream in the orders in which it is asked for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING

from .path_events import Event, EventClass, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence


class Launches:
    """The call behind every piece of device work, by correlation number within the trace."""

    def __init__(self, trace: Trace) -> None:
        self._calls: dict[int, list[Event]] = defaultdict(list)
        for event in trace.events:
            if event.event_class is EventClass.RUNTIME and event.correlation > 0:
                self._calls[event.correlation].append(event)
        self.work_of: dict[Event, list[Event]] = defaultdict(list)
        self._call_of: dict[Event, Event] = {}
        for work in trace.events:
            if work.event_class is EventClass.DEVICE:
                call = self.call(work.correlation, work.start_ns - trace.shift_ns(work))
                if call:
                    self._call_of[work] = call
                    self.work_of[call].append(work)

    def call(self, correlation: int | None, at_ns: int) -> Event | None:
        """Find the call with a number: of several the latest one before, else the earliest."""
        calls = self._calls.get(correlation or 0, [])
        before = [call for call in calls if call.start_ns <= at_ns]
        return before[-1] if before else next(iter(calls), None)

    def call_of(self, work: Event) -> Event | None:
        return self._call_of.get(work)

    def submitted_ns(self, work: Event) -> int:
        """Give when the host began to launch the work; its own start where nothing is known."""
        call = self.call_of(work)
        return call.start_ns if call else work.start_ns


class Stream:
    """The work of one stream, in content order and in the order of submission."""

    def __init__(self, works: Sequence[Event], launches: Launches) -> None:
        self.works = works
        self.submitted = sorted(works, key=lambda w: (launches.submitted_ns(w), w.rank))
        self._submitted_ns = [launches.submitted_ns(work) for work in self.submitted]
        self._last_finished: list[Event] = []
        for work in self.submitted:
            contenders = [*self._last_finished[-1:], work]
            self._last_finished.append(max(contenders, key=finish_order))

    def submitted_before(self, at_ns: int) -> Sequence[Event]:
        return self.submitted[: bisect_left(self._submitted_ns, at_ns)]

    def last_submitted_before(self, at_ns: int) -> Event | None:
        count = bisect_left(self._submitted_ns, at_ns)
        return self.submitted[count - 1] if count else None

    def last_finished_before(self, at_ns: int) -> Event | None:
        """Of the work submitted before a time, find the one that finishes last (perhaps later)."""
        count = bisect_left(self._submitted_ns, at_ns)
        return self._last_finished[count - 1] if count else None

    def next_submitted_after(self, at_ns: int) -> Event | None:
        index = bisect_right(self._submitted_ns, at_ns)
        return self.submitted[index] if index < len(self.submitted) else None


def finish_order(work: Event) -> tuple[int, int]:
    return (work.end_ns, work.rank)
