"""Threads at work: their clocks, the frames open on them, the points they have passed."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .changes import Kind
from .machine import Place
from .timeline import Activity, Cause, Moment, Timeline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .program import Frame, Item


FIRST_NS = 2_718_281_828_459_000  # traces begin long after the base of their clock


@dataclass(slots=True)
class Open:
    """A frame in which a thread is, and what time spent directly in it is called."""

    items: Iterator[Item]
    kind: Kind
    label: Activity | None
    activity: Activity | None = None
    in_operator: bool = False
    in_loader: bool = False

    def inner(self, frame: Frame, activity: Activity, body: Iterator[Item]) -> Open:
        """Return a frame just opened in this one; in an operator an annotation changes nothing."""
        is_annotation = frame.category == "user_annotation"
        in_operator = self.in_operator or frame.category == "cpu_op"
        in_loader = self.in_loader or frame.loading
        label = self.label if is_annotation and in_operator else activity
        kind = Kind.OPERATOR if in_operator else Kind.HOST_GAP
        kind = Kind.DATA_LOADING if in_loader else kind
        return Open(body, kind, label, activity, in_operator, in_loader)

    def unseen(self, body: Iterator[Item]) -> Open:
        """Return a frame just opened in this one that the profiler does not see."""
        return Open(body, self.kind, self.label, None, self.in_operator, self.in_loader)


@dataclass(slots=True)
class Thread:
    """A thread: its clock, its open frames, the last point it passed."""

    number: int
    clock_ns: int
    last: Moment | None
    stack: list[Open]
    n_items: int = 0
    owed: list[Cause] = field(default_factory=list)
    waiting_for: Thread | None = None

    @classmethod
    def new(cls, number: int, body: Sequence[Item]) -> Thread:
        """Return a thread that has not begun."""
        return cls(number, FIRST_NS, None, [Open(iter(body), Kind.HOST_GAP, None)])

    def next_place(self) -> Place:
        """Return the place of the next item; the count does not depend on time."""
        self.n_items += 1
        return Place(self.number, self.n_items)

    @property
    def label(self) -> Activity | None:
        """What time spent now is named after."""
        return self.stack[-1].label

    def pass_point(self) -> Moment:
        """Note that the thread got to where it is now."""
        inside = self.stack[-1]
        causes = list(self.owed)
        if self.last is not None:
            causes.insert(0, Cause(self.last, inside.kind, inside.label))
        self.owed.clear()
        self.last = Moment(self.clock_ns, causes)
        return self.last

    def begin(
        self, timeline: Timeline, category: str, name: str, args: Mapping[str, Any], place: Place
    ) -> Activity:
        """Note that something began on the thread; it has no end yet."""
        start = self.pass_point()
        activity = Activity(category, name, self.number, start, start, args, place, self._parent())
        timeline.activities.append(activity)
        return activity

    def external_id(self) -> int:
        """Return the number of the innermost open frame that has one."""
        opened = (inside.activity for inside in reversed(self.stack))
        numbers = (frame.external_id for frame in opened if frame is not None)
        return next(filter(None, numbers), 0)

    def _parent(self) -> Activity | None:
        opened = (inside.activity for inside in reversed(self.stack))
        return next((activity for activity in opened if activity is not None), None)


# Queues between host threads: who waits for what to be put or taken, and who wakes whom.


@dataclass(slots=True)
class HostQueue:
    """What is in a queue, and the threads parked before it in the order in which they came.

    An entry is only counted: a thread that wakes another is the one whose last point caused it.
    """

    n_held: int = 0
    takers: deque[Thread] = field(default_factory=deque)
    givers: deque[Thread] = field(default_factory=deque)
