"""The words of the graph: points in time order, and edges that say why a point is when it is."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from .path_events import Event, EventClass, Lane

if TYPE_CHECKING:
    from collections.abc import Sequence


class Kind(StrEnum):
    """What the time of an edge is called when the path takes it."""

    OPERATOR = "operator"
    RUNTIME = "runtime"
    HOST_GAP = "host_gap"
    DATA_LOADING = "data_loading"
    KERNEL = "kernel"
    COPY = "copy"
    COMMUNICATION = "communication"
    LAUNCH = "launch"
    CLOCK_SKEW = "clock_skew"
    KERNEL_DELAY = "kernel_delay"
    STREAM_OVERLAP = "stream_overlap"
    EVENT_WAIT = "event_wait"
    SYNC_RETURN = "sync_return"
    QUEUE_FULL = "queue_full"
    HANDOVER = "handover"
    GRAPH_GAP = "graph_gap"
    UNEXPLAINED = "unexplained"
    BEFORE_FIRST_EVENT = "before_first_event"
    AFTER_LAST_EVENT = "after_last_event"


class Role(StrEnum):
    """Why an edge exists; several roles may share a kind."""

    THREAD_ORDER = "thread_order"
    DEVICE_WORK = "device_work"
    OVERLAP_TAIL = "overlap_tail"
    STREAM_ORDER = "stream_order"
    STREAM_OVERLAP = "stream_overlap"
    OVERLAP_INSIDE = "overlap_inside"
    NO_REASON = "no_reason"
    EVENT_WAIT = "event_wait"
    JOINT_COLLECTIVE = "joint_collective"
    DEVICE_OCCUPIED = "device_occupied"
    SYNC = "sync"
    SYNC_INSIDE = "sync_inside"
    STAGING = "staging"
    QUEUE_FULL = "queue_full"
    HANDOVER = "handover"
    LAUNCH = "launch"
    LAUNCH_INSIDE = "launch_inside"
    CLOCK = "clock"

    @property
    def is_inside(self) -> bool:
        """Whether the edge leaves a running kernel, and so is finished only at its target."""
        return self in {Role.OVERLAP_INSIDE, Role.DEVICE_OCCUPIED, Role.SYNC_INSIDE}

    @property
    def tie_class(self) -> int:
        """0 for the own lane, 1 for what waits on another lane, 2 for launches: the first wins."""
        if self in {Role.LAUNCH, Role.LAUNCH_INSIDE, Role.CLOCK}:
            return 2
        if self in {
            Role.EVENT_WAIT,
            Role.JOINT_COLLECTIVE,
            Role.DEVICE_OCCUPIED,
            Role.SYNC,
            Role.SYNC_INSIDE,
            Role.STAGING,
            Role.QUEUE_FULL,
            Role.HANDOVER,
        }:
            return 1
        return 0

    @property
    def waits(self) -> Kind | None:
        """The kind of waiting the edge stands for, if it is one that a program could leave out."""
        return {
            Role.SYNC: Kind.SYNC_RETURN,
            Role.SYNC_INSIDE: Kind.SYNC_RETURN,
            Role.STAGING: Kind.SYNC_RETURN,
            Role.EVENT_WAIT: Kind.EVENT_WAIT,
            Role.QUEUE_FULL: Kind.QUEUE_FULL,
        }.get(self)


class Evidence(StrEnum):
    """How an edge is known."""

    ORDER = "order"
    CORRELATION = "correlation"
    RECORDED = "recorded"
    INFERRED = "inferred"
    NONE = "none"


class Point(NamedTuple):
    """The start or the end of an event."""

    time_ns: int
    event: Event
    is_end: bool


@dataclass(frozen=True, slots=True)
class Edge:
    """Lets ``target`` happen no earlier than ``source``, for the reason its role gives.

    ``event`` is the one its time belongs to, ``proof`` the row of the record it was read from.
    """

    source: int
    target: int
    kind: Kind
    role: Role
    event: Event | None
    evidence: Evidence
    proof: int | None = None

    @property
    def inferred(self) -> bool:
        return self.evidence is Evidence.INFERRED


class Points:
    """All points in time order; a point is known by its place in that order, its number.

    At one instant come ends (inner first), then events without duration (start, then end), then
    starts (outer first).
    """

    def __init__(self, events: Sequence[Event]) -> None:
        sides = [(event, is_end) for event in events for is_end in (False, True)]
        sides.sort(key=lambda side: _point_order(*side))
        self.points = [
            Point(event.end_ns if is_end else event.start_ns, event, is_end)
            for event, is_end in sides
        ]
        self._number = {side: number for number, side in enumerate(sides)}
        self.of_thread: dict[Lane, list[int]] = defaultdict(list)
        for number, (event, _) in enumerate(sides):
            if event.event_class is not EventClass.DEVICE:
                self.of_thread[event.lane].append(number)

    def start(self, event: Event) -> int:
        return self._number[event, False]

    def end(self, event: Event) -> int:
        return self._number[event, True]

    def time_ns(self, number: int) -> int:
        return self.points[number].time_ns

    def finished_ns(self, edge: Edge) -> int:
        """Give the time at which what the edge waits for was over."""
        return self.time_ns(edge.target if edge.role.is_inside else edge.source)

    def binding_order(self, edge: Edge) -> tuple[int, int, int, bool, str]:
        """Order edges into one point: the first binds. Latest source, tie class, content."""
        source = self.points[edge.source]
        tie = (edge.role.tie_class, source.event.rank, source.is_end, edge.role)
        return (-self.finished_ns(edge), *tie)

    def last_of_thread(self, thread: Lane, at_ns: int) -> int | None:
        """Find the thread's last point at or before a time."""
        numbers = self.of_thread[thread]
        index = bisect_right(numbers, at_ns, key=self.time_ns)
        return numbers[index - 1] if index else None


def _point_order(event: Event, is_end: bool) -> tuple[int, int, int, bool]:  # noqa: FBT001
    if event.start_ns == event.end_ns:
        return (event.start_ns, 1, event.rank, is_end)
    if is_end:
        return (event.end_ns, 0, -event.rank, True)
    return (event.start_ns, 2, event.rank, False)
