"""Runs a program on a machine and notes, as things happen, what each of them waited for.

Time is an integer of nanoseconds. The thread that is furthest behind does its next item, so items
happen in the order of their times. Streams are in order, so the start and the end of a piece of
work are settled when it is submitted: all it may wait for has been submitted before.

What happens is kept in two tables. An *activity* is an interval that the profiler will show. A
*moment* is a point in time together with its causes: the moments it came after, each with the kind
and the activity of the stretch between. Nothing here looks at a trace.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from .changes import Changes
from .kinds import Kind
from .machine import Machine, Place, Role
from .program import (
    Backward,
    Busy,
    Call,
    Frame,
    Item,
    Launch,
    Memory,
    Program,
    RecordEvent,
    Stream,
    Synchronize,
    WaitEvent,
    Work,
)

__all__ = ["AUTOGRAD_THREAD", "MAIN_THREAD", "Activity", "Cause", "Moment", "Note", "Sync", "Timeline", "Wait", "simulate"]

FIRST_NS = 4_307_007_933_626_000  # traces begin long after the base of their clock

_WORK_KINDS = {"kernel": Kind.KERNEL, "gpu_memcpy": Kind.COPY, "gpu_memset": Kind.COPY}
_DOORBELL_SHARE = 0.6  # how far into its call a launch rings, where it rings early
MAIN_THREAD, AUTOGRAD_THREAD, FIRST_HELPER = 0, 1, 2


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


@dataclass(slots=True)
class Timeline:
    """All that happened when a program ran."""

    activities: list[Activity] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)


def simulate(
    program: Program, machine: Machine, changes: Changes, *, record_python: bool = False
) -> Timeline:
    """Run a program and return what happened.

    Parameters
    ----------
    program, machine
        What to run, and on what.
    changes
        What is different this time.
    record_python
        Whether Python functions are seen. They take no time of their own beyond their body.
    """
    return _Engine(program, machine, changes, record_python=record_python).run()


@dataclass(slots=True)
class _Open:
    """A frame in which a thread is, and what time spent directly in it is called."""

    items: Iterator[Item]
    kind: Kind
    label: Activity | None
    activity: Activity | None = None
    in_operator: bool = False
    in_loader: bool = False


@dataclass(slots=True)
class _Thread:
    """A thread at work: its clock, its open frames, the last point it passed."""

    number: int
    clock_ns: int
    last: Moment | None
    stack: list[_Open]
    n_items: int = 0
    owed: list[Cause] = field(default_factory=list)
    waiting_for: _Thread | None = None

    def next_place(self) -> Place:
        """Return the place of the next item; the count does not depend on time."""
        self.n_items += 1
        return Place(self.number, self.n_items)


@dataclass(slots=True)
class _Queue:
    """A stream at work: its last piece of work and the launches that it still holds."""

    last: Activity | None = None
    outstanding: deque[Activity] = field(default_factory=deque)
    awaited: list[Activity] = field(default_factory=list)


class _Recorded(NamedTuple):
    """A device event: the last work before it, and the call that recorded it."""

    stream: Stream
    correlation: int
    last: Activity | None


_Settled: TypeAlias = tuple[int, list[Cause]]


class _Engine:
    """The state of one run."""

    def __init__(
        self, program: Program, machine: Machine, changes: Changes, *, record_python: bool
    ) -> None:
        self._machine = machine
        self._changes = changes
        self._record_python = record_python
        self._timeline = Timeline()
        self._queues: dict[Stream, _Queue] = {}
        self._events: dict[int, _Recorded] = {}
        self._correlation = 0
        self._external_id = 0
        main = _new_thread(MAIN_THREAD, program.main)
        helpers = [_new_thread(i, body) for i, body in enumerate(program.helpers, FIRST_HELPER)]
        self._autograd = _new_thread(AUTOGRAD_THREAD, ())
        self._ready = [main, *helpers]

    def run(self) -> Timeline:
        """Let the thread that is furthest behind go on, until none has anything to do."""
        while self._ready:
            thread = min(self._ready, key=lambda ready: ready.clock_ns)
            item = self._next_item(thread)
            if item is None:
                self._finish(thread)
            else:
                self._perform(thread, item)
        return self._timeline

    # Threads

    def _next_item(self, thread: _Thread) -> Item | None:
        """Return what is next, closing the frames that end before it."""
        while True:
            item = next(thread.stack[-1].items, None)
            if item is not None or len(thread.stack) == 1:
                return item
            self._close(thread)

    def _finish(self, thread: _Thread) -> None:
        """Let a thread rest, and the one that waits for it go on."""
        self._ready.remove(thread)
        waiter = thread.waiting_for
        if waiter is not None:
            thread.waiting_for = None
            self._note_return(thread, waiter)
            self._hand_over(thread, waiter, self._label(waiter))

    def _hand_over(self, giver: _Thread, taker: _Thread, label: Activity | None) -> None:
        """Wake a thread from the last point that the other passed."""
        nominal_ns = self._machine.handover_ns
        latency_ns = self._latency_ns(Kind.HANDOVER, "", giver.next_place(), nominal_ns)
        taker.clock_ns = max(giver.clock_ns, taker.clock_ns) + latency_ns
        if giver.last is not None:
            taker.owed.append(Cause(giver.last, Kind.HANDOVER, label))
        self._ready.append(taker)

    def _note_return(self, thread: _Thread, waiter: _Thread) -> None:
        waited_ns = max(0, thread.clock_ns - waiter.clock_ns)
        wait = Wait(Kind.HANDOVER, self._label(waiter), None, waited_ns)
        self._timeline.waits.append(wait)

    def _perform(self, thread: _Thread, item: Item) -> None:
        place = thread.next_place()
        match item:
            case Busy():
                self._work(thread, item, place)
            case Frame():
                self._open(thread, item, place)
            case Launch():
                self._launch(thread, item, place)
            case Call():
                self._plain_call(thread, item, place)
            case RecordEvent():
                self._record_event(thread, item, place)
            case WaitEvent():
                self._wait_event(thread, item, place)
            case Synchronize():
                self._synchronize(thread, item, place)
            case Backward():
                self._backward(thread, item)
            case Memory():
                note = Note(thread.clock_ns, thread.number, item.bytes, item.device)
                self._timeline.notes.append(note)

    def _work(self, thread: _Thread, busy: Busy, place: Place) -> None:
        inside = thread.stack[-1]
        duration_ns = self._machine.draw_ns(busy.nominal_ns, place, Role.DURATION)
        thread.clock_ns += self._changes.scaled_ns(duration_ns, inside.kind, _name(inside.label))

    def _open(self, thread: _Thread, frame: Frame, place: Place) -> None:
        outer = thread.stack[-1]
        body = iter(frame.body)
        if frame.category == "python_function" and not self._record_python:
            unseen = _Open(body, outer.kind, outer.label, None, outer.in_operator, outer.in_loader)
            thread.stack.append(unseen)
            return
        activity = self._begin(thread, frame.category, frame.name, frame.args, place)
        activity.sequence, activity.step = frame.sequence, frame.step
        if frame.category != "python_function":
            activity.external_id = self._next_external_id()
        thread.stack.append(_opened(outer, frame, activity, body))

    def _close(self, thread: _Thread) -> None:
        activity = thread.stack[-1].activity
        if activity is None:
            thread.stack.pop()
            return
        activity.end = self._pass_point(thread)
        thread.stack.pop()

    def _backward(self, thread: _Thread, item: Backward) -> None:
        autograd = self._autograd
        autograd.stack[0].items = iter(item.body)
        autograd.waiting_for = thread
        self._ready.remove(thread)
        self._hand_over(thread, autograd, self._label(thread))

    def _pass_point(self, thread: _Thread) -> Moment:
        """Note that a thread got to where it is now."""
        inside = thread.stack[-1]
        causes = list(thread.owed)
        if thread.last is not None:
            causes.insert(0, Cause(thread.last, inside.kind, inside.label))
        thread.owed.clear()
        thread.last = Moment(thread.clock_ns, causes)
        return thread.last

    def _begin(
        self, thread: _Thread, category: str, name: str, args: Mapping[str, Any], place: Place
    ) -> Activity:
        """Note that something began on a thread; it has no end yet."""
        start = self._pass_point(thread)
        parent = self._enclosing(thread)
        activity = Activity(category, name, thread.number, start, start, args, place, parent)
        self._timeline.activities.append(activity)
        return activity

    def _enclosing(self, thread: _Thread) -> Activity | None:
        opened = (inside.activity for inside in reversed(thread.stack))
        return next((activity for activity in opened if activity is not None), None)

    def _label(self, thread: _Thread) -> Activity | None:
        return thread.stack[-1].label

    def _next_external_id(self) -> int:
        self._external_id += 1
        return self._external_id

    # Calls

    def _plain_call(self, thread: _Thread, item: Call, place: Place) -> None:
        call = self._begin_call(thread, item.category, item.name, place)
        self._end_call(thread, call, self._own_end_ns(call, item.nominal_ns))

    def _record_event(self, thread: _Thread, item: RecordEvent, place: Place) -> None:
        call = self._begin_call(thread, "cuda_runtime", "cudaEventRecord", place)
        last = self._queue(item.stream).last
        self._events[item.event] = _Recorded(item.stream, call.correlation, last)
        self._end_call(thread, call, self._own_end_ns(call, 1_500))

    def _wait_event(self, thread: _Thread, item: WaitEvent, place: Place) -> None:
        call = self._begin_call(thread, "cuda_runtime", "cudaStreamWaitEvent", place)
        recorded = self._events.get(item.event)
        if recorded is not None:
            call.sync = _event_sync("Stream Wait Event", recorded, item.event, item.stream)
            if recorded.last is not None:
                self._queue(item.stream).awaited.append(recorded.last)
        self._end_call(thread, call, self._own_end_ns(call, 1_500))

    def _synchronize(self, thread: _Thread, item: Synchronize, place: Place) -> None:
        name, awaited, sync = self._scope(item)
        call = self._begin_call(thread, "cuda_runtime", name, place)
        call.sync = sync
        own_end_ns = self._own_end_ns(call, item.nominal_ns)
        self._end_call(thread, call, *self._held(call, own_end_ns, awaited, Kind.SYNC_RETURN))

    def _scope(self, item: Synchronize) -> tuple[str, Activity | None, Sync | None]:
        """Return the name of a synchronising call, the work it waits for, and its record."""
        if item.event is not None:
            recorded = self._events[item.event]
            sync = _event_sync("Event Sync", recorded, item.event, None)
            return item.name or "cudaEventSynchronize", recorded.last, sync
        if item.stream is not None:
            sync = Sync("Stream Sync", item.stream, item.stream.device)
            return item.name or "cudaStreamSynchronize", self._queue(item.stream).last, sync
        last = self._last_of_device(item.device)
        if item.name is not None:
            return item.name, last, None
        return "cudaDeviceSynchronize", last, Sync("Context Sync", None, item.device)

    def _last_of_device(self, device: int) -> Activity | None:
        works = (queue.last for stream, queue in self._queues.items() if stream.device == device)
        known = [work for work in works if work is not None]
        return max(known, key=lambda work: work.end.time_ns, default=None)

    def _launch(self, thread: _Thread, item: Launch, place: Place) -> None:
        call = self._begin_call(thread, item.category, item.name, place)
        blocker = self._blocker(call, self._queue(item.stream))
        own_end_ns = self._own_end_ns(call, item.nominal_ns)
        end_ns, causes = self._held(call, own_end_ns, blocker, Kind.QUEUE_FULL)
        if blocker is not None:
            end_ns = max(end_ns, call.start.time_ns + self._machine.queue_poll_ns)
        doorbell_ns = self._doorbell_ns(call, end_ns)
        if item.blocking:
            self._submit(item, call, doorbell_ns, inside=True)
            end_ns, waits = self._held(call, end_ns, call.works[-1], Kind.SYNC_RETURN)
            self._end_call(thread, call, end_ns, [*waits, *causes])
        elif doorbell_ns < end_ns and self._rings_early(item, call, doorbell_ns):
            self._submit(item, call, doorbell_ns, inside=True)
            self._end_call(thread, call, end_ns, causes)
        else:
            self._end_call(thread, call, end_ns, causes)
            self._submit(item, call, self._arrival_ns(call, item.works[0]), inside=False)

    def _doorbell_ns(self, call: Activity, end_ns: int) -> int:
        start_ns = call.start.time_ns
        return start_ns + self._machine.aligned_ns(_DOORBELL_SHARE * (end_ns - start_ns))

    def _rings_early(self, item: Launch, call: Activity, doorbell_ns: int) -> bool:
        """Whether the work begins inside its call: only a single work, on an idle stream."""
        if not item.rings_early or len(item.works) > 1:
            return False
        ready_ns = self._ready_ns(self._queue(item.stream), item.works[0], _part(call, 0))
        return ready_ns <= doorbell_ns

    def _arrival_ns(self, call: Activity, work: Work) -> int:
        latency_ns = self._machine.launch_latency_ns
        return call.end.time_ns + self._latency_ns(Kind.LAUNCH, work.name, call.place, latency_ns)

    def _blocker(self, call: Activity, queue: _Queue) -> Activity | None:
        """Return the work that must end before the queue takes another launch."""
        while queue.outstanding and queue.outstanding[0].end.time_ns <= call.start.time_ns:
            queue.outstanding.popleft()
        n_too_many = len(queue.outstanding) - self._machine.queue_limit + 1
        if n_too_many <= 0 or not self._changes.waits(Kind.QUEUE_FULL, call.name):
            return None
        return queue.outstanding[n_too_many - 1]

    def _begin_call(self, thread: _Thread, category: str, name: str, place: Place) -> Activity:
        call = self._begin(thread, category, name, {}, place)
        self._correlation += 1
        call.correlation = self._correlation
        opened = (inside.activity for inside in reversed(thread.stack))
        numbers = (frame.external_id for frame in opened if frame is not None)
        call.external_id = next(filter(None, numbers), 0)
        return call

    def _end_call(
        self, thread: _Thread, call: Activity, end_ns: int, causes: Sequence[Cause] = ()
    ) -> None:
        thread.clock_ns = end_ns
        call.end = thread.last = Moment(end_ns, [self._own(call), *causes])

    def _own(self, call: Activity) -> Cause:
        return Cause(call.start, Kind.RUNTIME, call)

    def _own_end_ns(self, call: Activity, nominal_ns: int) -> int:
        duration_ns = self._machine.draw_ns(nominal_ns, call.place, Role.DURATION)
        own_ns = self._changes.scaled_ns(duration_ns, Kind.RUNTIME, call.name)
        return call.start.time_ns + own_ns

    def _held(
        self, call: Activity, own_end_ns: int, awaited: Activity | None, kind: Kind
    ) -> _Settled:
        """Return when a call ends that also waits for the end of some work."""
        if awaited is None or not self._changes.waits(kind, call.name):
            return own_end_ns, []
        self._note_wait(kind, call, awaited, call.start.time_ns)
        if awaited.end.time_ns <= call.start.time_ns:
            return own_end_ns, []
        nominal_ns = self._machine.return_latency_ns
        back_ns = self._latency_ns(kind, call.name, call.place, nominal_ns, Role.RETURN)
        end_ns = max(own_end_ns, awaited.end.time_ns + back_ns)
        return end_ns, [Cause(awaited.end, kind, call)]

    # Devices

    def _queue(self, stream: Stream) -> _Queue:
        return self._queues.setdefault(stream, _Queue())

    def _submit(self, item: Launch, call: Activity, arrival_ns: int, *, inside: bool) -> None:
        """Settle when the works of a call begin and end."""
        queue = self._queue(item.stream)
        for part, work in enumerate(item.works):
            place = _part(call, part)
            ready_ns = self._ready_ns(queue, work, place)
            activity = self._settle(item, call, work, place, max(arrival_ns, ready_ns))
            activity.start.causes.extend(self._start_causes(queue, activity))
            activity.start.causes.append(_launch_cause(activity, call, inside=inside))
            queue.last = activity
            queue.awaited.clear()
        queue.outstanding.append(call.works[-1])

    def _settle(
        self, item: Launch, call: Activity, work: Work, place: Place, start_ns: int
    ) -> Activity:
        """Note a piece of work, of which only the causes of its start are open."""
        kind = _work_kind(work)
        duration_ns = self._machine.draw_ns(work.nominal_ns, place, Role.WORK)
        duration_ns = self._changes.scaled_ns(duration_ns, kind, work.name)
        start = Moment(start_ns, [])
        end = Moment(start_ns + duration_ns, [])
        activity = Activity(
            work.category, work.name, item.stream, start, end, work.args, place, parent=call
        )
        end.causes.append(Cause(start, kind, activity))
        activity.correlation, activity.external_id = call.correlation, call.external_id
        self._timeline.activities.append(activity)
        call.works.append(activity)
        return activity

    def _ready_ns(self, queue: _Queue, work: Work, place: Place) -> int:
        """Return when the stream could begin a work that had been there long before."""
        times = [0]
        if queue.last is not None:
            gap_ns = self._machine.kernel_gap_ns
            times.append(
                queue.last.end.time_ns
                + self._latency_ns(Kind.KERNEL_DELAY, work.name, place, gap_ns, Role.GAP)
            )
        if queue.awaited and self._changes.waits(Kind.EVENT_WAIT, work.name):
            latency_ns = self._machine.event_latency_ns
            after_ns = self._latency_ns(Kind.EVENT_WAIT, work.name, place, latency_ns, Role.RETURN)
            times += [awaited.end.time_ns + after_ns for awaited in queue.awaited]
        return max(times)

    def _start_causes(self, queue: _Queue, activity: Activity) -> list[Cause]:
        """Return what a work waited for on its own and on other streams."""
        causes = []
        since_ns = activity.launched_by.end.time_ns
        if queue.last is not None:
            causes.append(Cause(queue.last.end, Kind.KERNEL_DELAY, activity))
            since_ns = max(since_ns, queue.last.end.time_ns)
        if self._changes.waits(Kind.EVENT_WAIT, activity.name):
            for awaited in queue.awaited:
                causes.append(Cause(awaited.end, Kind.EVENT_WAIT, activity))
                self._note_wait(Kind.EVENT_WAIT, activity, awaited, since_ns)
        return causes

    def _note_wait(self, kind: Kind, waiter: Activity, awaited: Activity, since_ns: int) -> None:
        waited_ns = max(0, awaited.end.time_ns - since_ns)
        self._timeline.waits.append(Wait(kind, waiter, awaited, waited_ns))

    def _latency_ns(
        self, kind: Kind, name: str, place: Place, nominal_ns: int, role: Role = Role.LATENCY
    ) -> int:
        drawn_ns = self._machine.draw_ns(nominal_ns, place, role)
        return self._changes.scaled_ns(drawn_ns, kind, name)


def _new_thread(number: int, body: Sequence[Item]) -> _Thread:
    outermost = _Open(iter(body), Kind.HOST_GAP, None)
    return _Thread(number, FIRST_NS, None, [outermost])


def _opened(outer: _Open, frame: Frame, activity: Activity, body: Iterator[Item]) -> _Open:
    """Return a frame just opened. Annotations are labels: within an operator they change nothing."""
    is_annotation = frame.category == "user_annotation"
    in_operator = outer.in_operator or frame.category == "cpu_op"
    in_loader = outer.in_loader or frame.loading
    label = outer.label if is_annotation and in_operator else activity
    kind = Kind.OPERATOR if in_operator else Kind.HOST_GAP
    kind = Kind.DATA_LOADING if in_loader else kind
    return _Open(body, kind, label, activity, in_operator, in_loader)


def _name(label: Activity | None) -> str:
    return "" if label is None else label.name


def _part(call: Activity, part: int) -> Place:
    """Return the place of one of the works of a call."""
    return call.place._replace(part=part + 1)


def _launch_cause(activity: Activity, call: Activity, *, inside: bool) -> Cause:
    """Return how a work came from its call: while it was open, or after it."""
    if inside:
        return Cause(call.start, Kind.RUNTIME, call)
    return Cause(call.end, Kind.LAUNCH, activity)


def _work_kind(work: Work) -> Kind:
    return Kind.COMMUNICATION if work.is_collective else _WORK_KINDS[work.category]


def _event_sync(kind: str, recorded: _Recorded, event: int, stream: Stream | None) -> Sync:
    waits_on = (recorded.stream, recorded.correlation)
    return Sync(kind, stream, recorded.stream.device, waits_on, event)
