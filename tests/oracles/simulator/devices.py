"""Streams of work: what they hold, when their work begins, and what it waits for.

Streams are in order, so the start and the end of a GPU activity are settled when it is
submitted: all that it may wait for has been submitted before.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from .changes import Kind
from .machine import Place, Role
from .timeline import Activity, Cause, Moment, Timeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .changes import Conditions
    from .program import Launch, Node, Replay, Stream, Work

_APART_NS = 1_500  # the ends of one collective on different devices lie so far apart
_WORK_KINDS = {"kernel": Kind.KERNEL, "gpu_memcpy": Kind.COPY, "gpu_memset": Kind.COPY}


class Recorded(NamedTuple):
    """A device event: the call that recorded it, and the last work on the stream before that."""

    stream: Stream
    correlation: int
    last: Activity | None


class Submission(NamedTuple):
    """A launch, its call, and when its work arrives at the device."""

    launch: Launch
    call: Activity
    arrival_ns: int


@dataclass(slots=True)
class _Queue:
    """A stream: its last work, the launches it still holds, the work its next one waits for."""

    last: Activity | None = None
    outstanding: deque[Activity] = field(default_factory=deque)
    awaited: list[Activity] = field(default_factory=list)


class Devices:
    """All streams of all devices in a run."""

    def __init__(
        self, conditions: Conditions, timeline: Timeline, legacy_stream: int | None = None
    ) -> None:
        self._conditions = conditions
        self._legacy_stream = legacy_stream
        self._timeline = timeline
        self._queues: dict[Stream, _Queue] = {}

    def last_on(self, stream: Stream) -> Activity | None:
        """Return the last work that a stream was given."""
        return self._queue(stream).last

    def last_to_end(self, device: int) -> Activity | None:
        """Return the work of a device that ends last."""
        works = (queue.last for stream, queue in self._queues.items() if stream.device == device)
        known = [work for work in works if work is not None]
        return max(known, key=lambda work: work.end.time_ns, default=None)

    def recorded(self, stream: Stream, call: Activity) -> Recorded:
        """Return the event that a call records on a stream."""
        return Recorded(stream, call.correlation, self.last_on(stream))

    def let_wait(self, stream: Stream, event: Recorded) -> None:
        """Make the next work of a stream wait for an event."""
        if event.last is not None:
            self._queue(stream).awaited.append(event.last)

    def blocker(self, stream: Stream, call: Activity) -> Activity | None:
        """Return the work that must end before a stream takes another launch."""
        outstanding = self._queue(stream).outstanding
        while outstanding and outstanding[0].end.time_ns <= call.start.time_ns:
            outstanding.popleft()
        n_too_many = len(outstanding) - self._conditions.machine.queue_limit + 1
        if n_too_many <= 0 or not self._conditions.waits(Kind.QUEUE_FULL, call.name):
            return None
        return outstanding[n_too_many - 1]

    def ready_ns(self, stream: Stream, work: Work, place: Place) -> int:
        """Return when a stream could begin a work that had been there long before."""
        queue = self._queue(stream)
        times = [0]
        machine, takes_ns = self._conditions.machine, self._conditions.takes_ns
        nominal_ns = machine.kernel_gap_ns
        gap_ns = takes_ns(nominal_ns, Kind.KERNEL_DELAY, work.name, place, Role.GAP)
        times += [] if queue.last is None else [queue.last.end.time_ns + gap_ns]
        if queue.awaited and self._conditions.waits(Kind.EVENT_WAIT, work.name):
            nominal_ns = machine.event_latency_ns
            after_ns = takes_ns(nominal_ns, Kind.EVENT_WAIT, work.name, place, Role.RETURN)
            times += [awaited.end.time_ns + after_ns for awaited in queue.awaited]
        return max(times)

    def submit(self, launch: Launch, call: Activity, arrival_ns: int, *, inside: bool) -> None:
        """Settle when the works of a call begin and end.

        With `inside` they arrive while the call is open, otherwise after its end.
        """
        queue = self._queue(launch.stream)
        self._let_wait_by_legacy(launch.stream)
        for part, work in enumerate(launch.works):
            place = place_of_part(call, part)
            start_ns = max(arrival_ns, self.ready_ns(launch.stream, work, place))
            activity = self._settle(launch.stream, call, work, place, start_ns)
            self._note_causes(launch.stream, activity, call, inside=inside)
            queue.last = activity
            queue.awaited.clear()
        queue.outstanding.append(call.works[-1])

    def submit_joint(self, submissions: Sequence[Submission]) -> None:
        """Settle a collective of several devices: all end together, after the last began."""
        for launch, call, arrival_ns in submissions:
            self.submit(launch, call, arrival_ns, inside=False)
        works = [call.works[-1] for _, call, _ in submissions]
        last = max(works, key=lambda work: work.start.time_ns)
        duration_ns = last.end.time_ns - last.start.time_ns
        for work in works:
            apart_ns = self._conditions.machine.draw_ns(_APART_NS, work.place, Role.RETURN)
            work.end.time_ns = last.start.time_ns + duration_ns + apart_ns
            if work is not last:
                work.end.causes.append(Cause(last.start, Kind.COMMUNICATION, last))

    def submit_graph(self, replay: Replay, call: Activity, arrival_ns: int) -> None:
        """Settle the nodes of a graph. To its stream a graph is one operation."""
        queue = self._queue(replay.stream)
        self._let_wait_by_legacy(replay.stream)
        on_stream: dict[Stream, Activity] = {}
        for part, node in enumerate(replay.nodes):
            before = on_stream.get(node.stream)
            awaited = [call.works[other] for other in node.after]
            start = _Start(self._conditions, arrival_ns, node, place_of_part(call, part))
            on_stream[node.stream] = self._settle_node(replay, call, start, before, awaited)
        queue.last = max(call.works, key=lambda work: work.end.time_ns)
        queue.awaited.clear()
        queue.outstanding.append(queue.last)

    def _settle_node(
        self,
        replay: Replay,
        call: Activity,
        start: _Start,
        before: Activity | None,
        awaited: Sequence[Activity],
    ) -> Activity:
        """Note a node: it begins after the one before it on its stream and those it depends on."""
        if before is None and not awaited:
            queue = self._queue(replay.stream)
            before, awaited = queue.last, tuple(queue.awaited)
        start.after(before, Kind.KERNEL_DELAY)
        for other in awaited:
            start.after(other, Kind.EVENT_WAIT)
        node, place = start.node, start.place
        activity = self._settle(node.stream, call, node.work, place, start.time_ns)
        since_ns = max(call.end.time_ns, 0 if before is None else before.end.time_ns)
        for other in awaited:
            self._timeline.note_wait(Kind.EVENT_WAIT, activity, other, since_ns)
        causes = [Cause(other.end, kind, activity) for other, kind in start.others]
        activity.start.causes.extend([*causes, Cause(call.end, Kind.LAUNCH, activity)])
        return activity

    def _let_wait_by_legacy(self, stream: Stream) -> None:
        """Make the legacy stream wait for all others of its device, and the others for it."""
        if self._legacy_stream is None:
            return
        is_legacy = stream.number == self._legacy_stream
        for other, queue in self._queues.items():
            apart = other.device == stream.device and other != stream
            if apart and queue.last and (is_legacy or other.number == self._legacy_stream):
                self._queue(stream).awaited.append(queue.last)

    def _queue(self, stream: Stream) -> _Queue:
        return self._queues.setdefault(stream, _Queue())

    def _settle(
        self, stream: Stream, call: Activity, work: Work, place: Place, start_ns: int
    ) -> Activity:
        """Note a GPU activity, of which only the causes of its start are open."""
        kind = Kind.COMMUNICATION if work.is_collective else _WORK_KINDS[work.category]
        nominal_ns = work.nominal_ns
        duration_ns = self._conditions.takes_ns(nominal_ns, kind, work.name, place, Role.WORK)
        start = Moment(start_ns, [])
        end = Moment(start_ns + duration_ns, [])
        activity = Activity(
            work.category, work.name, stream, start, end, work.args, place, parent=call
        )
        end.causes.append(Cause(start, kind, activity))
        activity.correlation, activity.external_id = call.correlation, call.external_id
        self._timeline.activities.append(activity)
        call.works.append(activity)
        return activity

    def _note_causes(
        self, stream: Stream, activity: Activity, call: Activity, *, inside: bool
    ) -> None:
        """Note what a work waited for: its own stream, other streams, its call."""
        queue = self._queue(stream)
        causes = activity.start.causes
        since_ns = call.end.time_ns
        if queue.last is not None:
            causes.append(Cause(queue.last.end, Kind.KERNEL_DELAY, activity))
            since_ns = max(since_ns, queue.last.end.time_ns)
        if self._conditions.waits(Kind.EVENT_WAIT, activity.name):
            for awaited in queue.awaited:
                causes.append(Cause(awaited.end, Kind.EVENT_WAIT, activity))
                self._timeline.note_wait(Kind.EVENT_WAIT, activity, awaited, since_ns)
        if inside:
            causes.append(Cause(call.start, Kind.RUNTIME, call))
        else:
            causes.append(Cause(call.end, Kind.LAUNCH, activity))


@dataclass(slots=True)
class _Start:
    """When a node of a graph can begin, and after what."""

    conditions: Conditions
    time_ns: int
    node: Node
    place: Place
    others: list[tuple[Activity, Kind]] = field(default_factory=list)

    def after(self, other: Activity | None, kind: Kind) -> None:
        """Make the node begin after something else."""
        name = self.node.work.name
        if other is None or (kind == Kind.EVENT_WAIT and not self.conditions.waits(kind, name)):
            return
        machine = self.conditions.machine
        nominal_ns = (
            machine.kernel_gap_ns if kind == Kind.KERNEL_DELAY else machine.event_latency_ns
        )
        role = Role.GAP if kind == Kind.KERNEL_DELAY else Role.RETURN
        latency_ns = self.conditions.takes_ns(nominal_ns, kind, name, self.place, role)
        self.time_ns = max(self.time_ns, other.end.time_ns + latency_ns)
        self.others.append((other, kind))


def place_of_part(call: Activity, part: int) -> Place:
    """Return the place of one of the works of a call."""
    return call.place._replace(part=part + 1)
