"""Lets the threads of a program run on a machine.

Time is an integer of nanoseconds. The thread that is furthest behind does its next item, so items
happen in the order of their times. What happens goes into a timeline, with its causes, at the
moment it happens; nothing here looks at a trace.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .conditions import Conditions
from .devices import Devices, Recorded, place_of_part
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
)
from .timeline import (
    AUTOGRAD_THREAD,
    FIRST_HELPER,
    MAIN_THREAD,
    Activity,
    Cause,
    Moment,
    Note,
    Sync,
    Timeline,
    Wait,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .changes import Changes

__all__ = ["simulate"]

_FIRST_NS = 2_718_281_828_459_000  # traces begin long after the base of their clock
_DOORBELL_SHARE = 0.6  # how far into its call a launch rings, where it rings early
_EVENT_CALL_NS = 1_500


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
    return _Engine(program, Conditions(machine, changes), record_python=record_python).run()


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


class _Engine:
    """The state of one run."""

    def __init__(self, program: Program, conditions: Conditions, *, record_python: bool) -> None:
        self._conditions = conditions
        self._record_python = record_python
        self._timeline = Timeline()
        self._devices = Devices(conditions, self._timeline)
        self._events: dict[int, Recorded] = {}
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
        place, nominal_ns = giver.next_place(), self._conditions.machine.handover_ns
        taker.clock_ns = max(giver.clock_ns, taker.clock_ns) + self._conditions.takes_ns(
            nominal_ns, Kind.HANDOVER, "", place, Role.LATENCY
        )
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
        name = "" if inside.label is None else inside.label.name
        thread.clock_ns += self._conditions.takes_ns(
            busy.nominal_ns, inside.kind, name, place, Role.DURATION
        )

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
        self._events[item.event] = self._devices.recorded(item.stream, call)
        self._end_call(thread, call, self._own_end_ns(call, _EVENT_CALL_NS))

    def _wait_event(self, thread: _Thread, item: WaitEvent, place: Place) -> None:
        call = self._begin_call(thread, "cuda_runtime", "cudaStreamWaitEvent", place)
        recorded = self._events.get(item.event)
        if recorded is not None:
            call.sync = _event_sync("Stream Wait Event", recorded, item.event, item.stream)
            self._devices.let_wait(item.stream, recorded)
        self._end_call(thread, call, self._own_end_ns(call, _EVENT_CALL_NS))

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
            return item.name or "cudaStreamSynchronize", self._devices.last_on(item.stream), sync
        last = self._devices.last_to_end(item.device)
        if item.name is not None:
            return item.name, last, None
        return "cudaDeviceSynchronize", last, Sync("Context Sync", None, item.device)

    def _launch(self, thread: _Thread, item: Launch, place: Place) -> None:
        call = self._begin_call(thread, item.category, item.name, place)
        blocker = self._devices.blocker(item.stream, call)
        own_end_ns = self._own_end_ns(call, item.nominal_ns)
        end_ns, causes = self._held(call, own_end_ns, blocker, Kind.QUEUE_FULL)
        if blocker is not None:
            end_ns = max(end_ns, call.start.time_ns + self._conditions.machine.queue_poll_ns)
        doorbell_ns = self._doorbell_ns(call, end_ns)
        if item.blocking:
            self._devices.submit(item, call, doorbell_ns, inside=True)
            end_ns, waits = self._held(call, end_ns, call.works[-1], Kind.SYNC_RETURN)
            self._end_call(thread, call, end_ns, [*waits, *causes])
        elif doorbell_ns < end_ns and self._rings_early(item, call, doorbell_ns):
            self._devices.submit(item, call, doorbell_ns, inside=True)
            self._end_call(thread, call, end_ns, causes)
        else:
            self._end_call(thread, call, end_ns, causes)
            self._devices.submit(item, call, self._arrival_ns(item, call), inside=False)

    def _doorbell_ns(self, call: Activity, end_ns: int) -> int:
        start_ns = call.start.time_ns
        within_ns = _DOORBELL_SHARE * (end_ns - start_ns)
        return start_ns + self._conditions.machine.aligned_ns(within_ns)

    def _rings_early(self, item: Launch, call: Activity, doorbell_ns: int) -> bool:
        """Whether the work begins inside its call: only a single work, on an idle stream."""
        if not item.rings_early or len(item.works) > 1:
            return False
        place = place_of_part(call, 0)
        return self._devices.ready_ns(item.stream, item.works[0], place) <= doorbell_ns

    def _arrival_ns(self, item: Launch, call: Activity) -> int:
        nominal_ns, name = self._conditions.machine.launch_latency_ns, item.works[0].name
        return call.end.time_ns + self._conditions.takes_ns(
            nominal_ns, Kind.LAUNCH, name, call.place, Role.LATENCY
        )

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
        return call.start.time_ns + self._conditions.takes_ns(
            nominal_ns, Kind.RUNTIME, call.name, call.place, Role.DURATION
        )

    def _held(
        self, call: Activity, own_end_ns: int, awaited: Activity | None, kind: Kind
    ) -> tuple[int, list[Cause]]:
        """Return when a call ends that also waits for the end of some work."""
        if awaited is None or not self._conditions.waits(kind, call.name):
            return own_end_ns, []
        self._timeline.note_wait(kind, call, awaited, call.start.time_ns)
        if awaited.end.time_ns <= call.start.time_ns:
            return own_end_ns, []
        nominal_ns = self._conditions.machine.return_latency_ns
        back_ns = self._conditions.takes_ns(nominal_ns, kind, call.name, call.place, Role.RETURN)
        end_ns = max(own_end_ns, awaited.end.time_ns + back_ns)
        return end_ns, [Cause(awaited.end, kind, call)]


def _new_thread(number: int, body: Sequence[Item]) -> _Thread:
    outermost = _Open(iter(body), Kind.HOST_GAP, None)
    return _Thread(number, _FIRST_NS, None, [outermost])


def _opened(outer: _Open, frame: Frame, activity: Activity, body: Iterator[Item]) -> _Open:
    """Return a frame just opened. Within an operator an annotation changes nothing."""
    is_annotation = frame.category == "user_annotation"
    in_operator = outer.in_operator or frame.category == "cpu_op"
    in_loader = outer.in_loader or frame.loading
    label = outer.label if is_annotation and in_operator else activity
    kind = Kind.OPERATOR if in_operator else Kind.HOST_GAP
    kind = Kind.DATA_LOADING if in_loader else kind
    return _Open(body, kind, label, activity, in_operator, in_loader)


def _event_sync(kind: str, recorded: Recorded, event: int, stream: Stream | None) -> Sync:
    waits_on = (recorded.stream, recorded.correlation)
    return Sync(kind, stream, recorded.stream.device, waits_on, event)
