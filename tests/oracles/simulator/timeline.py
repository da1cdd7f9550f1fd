"""What happened when a program ran, and what each thing came after.

An *activity* is an interval that the profiler will show. A *moment* is a point in time together
with its causes: the moments it came after, each with the kind and the activity of the stretch
between the two. The engine writes both down as things happen.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from .program import Stream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .changes import Kind
    from .machine import Place

MAIN_THREAD, AUTOGRAD_THREAD, FIRST_HELPER = 0, 1, 2
"""Threads by number."""


@dataclass(slots=True)
class Moment:
    """A point in time and what it came after; without causes where a thread begins."""

    time_ns: int
    causes: list[Cause]

    def binding(self) -> Cause | None:
        """Return the cause that was over last; of equals the first, which is nearest at hand."""
        return max(self.causes, key=lambda cause: cause.source.time_ns, default=None)


class Cause(NamedTuple):
    """What a moment came after, and what the time between the two is called.

    Causes stand in the order own lane, waits, launch.
    """

    source: Moment
    kind: Kind
    activity: Activity | None


@dataclass(slots=True)
class Sync:
    """What a synchronising call asked for, as the profiler may record it."""

    kind: str
    stream: Stream | None
    device: int
    waits_on: tuple[Stream, int] | None = None
    event: int | None = None


@dataclass(slots=True, eq=False)
class Activity:
    """An interval on a thread or a stream."""

    category: str
    name: str
    lane: int | Stream
    start: Moment
    end: Moment
    args: Mapping[str, Any]
    place: Place
    parent: Activity | None = None
    correlation: int = 0
    external_id: int = 0
    sequence: int | None = None
    step: int | None = None
    sync: Sync | None = None
    works: list[Activity] = field(default_factory=list)
    is_recorded: bool = True

    @property
    def launched_by(self) -> Activity:
        """The call that a work came from."""
        if self.parent is None or not self.is_work:
            message = f"{self.name} was not launched"
            raise ValueError(message)
        return self.parent

    @property
    def is_work(self) -> bool:
        """Whether it ran on a device."""
        return isinstance(self.lane, Stream)


class Note(NamedTuple):
    """An allocation, as the allocator noted it."""

    time_ns: int
    thread: int
    bytes: int
    device: int


class Wait(NamedTuple):
    """One thing that had to wait, or might have had to, for the end of another.

    `waited_ns` is what was left of the other when the waiter was there: 0 if it came too late to
    wait. A thread waits in its activity, if any is open.
    """

    kind: Kind
    waiter: Activity | None
    awaited: Activity | None
    waited_ns: int


@dataclass
class Timeline:
    """All that happened when a program ran."""

    activities: list[Activity] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    recorded_from_ns: int = 0

    def note_wait(self, kind: Kind, waiter: Activity, awaited: Activity, since_ns: int) -> None:
        """Note that the waiter went on after the awaited, for which it was ready since then."""
        waited_ns = max(0, awaited.end.time_ns - since_ns)
        self.waits.append(Wait(kind, waiter, awaited, waited_ns))

    def launches_between(self, start_ns: int, end_ns: int) -> list[Activity]:
        """Return the calls that launched something and began in this time, when all is over."""
        first = bisect_left(self._launch_times_ns, start_ns)
        return self._launches[first : bisect_left(self._launch_times_ns, end_ns)]

    @cached_property
    def _launches(self) -> list[Activity]:
        launches = [activity for activity in self.activities if activity.works]
        return sorted(launches, key=lambda call: call.start.time_ns)

    @cached_property
    def _launch_times_ns(self) -> list[int]:
        return [call.start.time_ns for call in self._launches]
