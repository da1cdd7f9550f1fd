"""Which call launched what, and the work of one stream in the orders in which it is asked for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING

from . import path_limits as limits
from .call_order import CallOrder, Numbered
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
        self.order = CallOrder(
            Numbered(call.correlation, call.start_ns, call.end_ns, call.lane.owner, call.lane)
            for calls in self._calls.values()
            for call in calls
        )
        self._bounds_ns: dict[Event, tuple[int, int]] = {}
        for work in trace.events:
            if work.event_class is EventClass.DEVICE and work not in self._call_of:
                self._bounds_ns[work] = self._submission_bounds_ns(work, trace)

    def _submission_bounds_ns(self, work: Event, trace: Trace) -> tuple[int, int]:
        """Say when work without a launcher was submitted: between the linked work around it.

        And between the calls with the numbers around its own.
        """
        linked = [it for it in trace.events if it in self._call_of and it.lane == work.lane]
        before = [it for it in linked if it.rank < work.rank]
        behind = [it for it in linked if it.rank > work.rank]
        after_ns = self._call_of[before[-1]].start_ns if before else -(2**63)
        before_ns = max(work.start_ns, after_ns)
        if behind:
            before_ns = max(min(before_ns, self._call_of[behind[0]].start_ns), after_ns)
        if linked:
            process = self._call_of[linked[0]].lane.owner
            numbered_ns = self.order.around(process, work.correlation)
            after_ns = min(max(after_ns, numbered_ns[0]), before_ns)
            before_ns = max(min(before_ns, numbered_ns[1]), after_ns)
        return after_ns, before_ns

    def call(self, correlation: int | None, at_ns: int) -> Event | None:
        """Find the call with a number: of several the latest one before, else the earliest."""
        calls = self._calls.get(correlation or 0, [])
        before = [call for call in calls if call.start_ns <= at_ns]
        return before[-1] if before else next(iter(calls), None)

    def call_of(self, work: Event) -> Event | None:
        return self._call_of.get(work)

    def submitted_ns(self, work: Event) -> int:
        """Give when the host began to launch the work; without a launcher, the latest."""
        call = self.call_of(work)
        return call.start_ns if call else self._bounds_ns[work][1]

    def earliest_submission_ns(self, work: Event) -> int:
        """Give the same; without a launcher, the earliest."""
        call = self.call_of(work)
        return call.start_ns if call else self._bounds_ns[work][0]


class Stream:
    """The work of one stream, in content order and in the order of submission."""

    def __init__(self, works: Sequence[Event], launches: Launches) -> None:
        self.works = works
        self._launches = launches
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

    def last_awaited(self, asked_ns: int, call: Event) -> Event | None:
        """Find the same for a call that waits; work without a launcher must end in the call."""
        known = self.last_finished_before(asked_ns)
        after_ns = max(known.end_ns, call.start_ns) if known else call.start_ns
        until_ns = call.end_ns + limits.CLOCK_TOLERANCE_NS
        return self.unlinked_in(asked_ns, after_ns, until_ns) or known

    def unlinked_in(self, asked_ns: int, after_ns: int, until_ns: int) -> Event | None:
        """Find the last to end, in a stretch, of the work without a launcher submitted before."""
        found = [
            work
            for work in self.works
            if self._launches.call_of(work) is None
            and after_ns < work.end_ns <= until_ns
            and self._launches.earliest_submission_ns(work) < asked_ns
        ]
        return max(found, key=finish_order, default=None)

    def next_submitted_after(self, at_ns: int) -> Event | None:
        index = bisect_right(self._submitted_ns, at_ns)
        return self.submitted[index] if index < len(self.submitted) else None


def finish_order(work: Event) -> tuple[int, int]:
    return (work.end_ns, work.rank)
