"""Runs the threads of a program on a simulated machine.

Time is an integer of nanoseconds. The thread that is furthest behind does its next item, so items
happen in the order of their times. What happens goes into a timeline, with its causes, at the
moment it happens; nothing here looks at a trace.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from .calls import Calls
from .changes import Conditions, Kind
from .devices import Devices
from .machine import Machine, Place, Role
from .program import (
    Backward,
    Busy,
    Call,
    Frame,
    Get,
    Item,
    Joint,
    Launch,
    Memory,
    Poll,
    Program,
    Put,
    RecordEvent,
    Replay,
    Start,
    StartRecording,
    Synchronize,
    WaitEvent,
)
from .threads import HostQueue, Thread
from .timeline import (
    AUTOGRAD_THREAD,
    FIRST_HELPER,
    MAIN_THREAD,
    Cause,
    Note,
    Timeline,
    Wait,
)

if TYPE_CHECKING:
    from .changes import Changes


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


class _Engine:
    """The state of one run."""

    def __init__(self, program: Program, conditions: Conditions, *, record_python: bool) -> None:
        self._conditions = conditions
        self._record_python = record_python
        self._timeline = Timeline()
        devices = Devices(conditions, self._timeline, program.legacy_stream)
        self._calls = Calls(conditions, self._timeline, devices)
        self._queues: defaultdict[int, HostQueue] = defaultdict(HostQueue)
        self._external_id = 0
        main = Thread.new(MAIN_THREAD, program.main)
        bodies = enumerate(program.helpers, FIRST_HELPER)
        self._helpers = [Thread.new(number, body) for number, body in bodies]
        self._autograd = Thread.new(AUTOGRAD_THREAD, ())
        at_once = [i for i in range(len(self._helpers)) if i not in program.late_helpers]
        self._ready = [main, *(self._helpers[i] for i in at_once)]

    def run(self) -> Timeline:
        """Run the thread with the earliest time next, until none has anything to do."""
        while self._ready:
            thread = min(self._ready, key=lambda ready: ready.clock_ns)
            item = self._next_item(thread)
            if item is None:
                self._finish(thread)
            else:
                self._perform(thread, item)
        return self._timeline

    # Threads

    def _next_item(self, thread: Thread) -> Item | None:
        """Return what is next, closing the frames that end before it."""
        while True:
            item = next(thread.stack[-1].items, None)
            if item is not None or len(thread.stack) == 1:
                return item
            self._close(thread)

    def _finish(self, thread: Thread) -> None:
        """Suspend a thread, and resume the one that waits for it."""
        self._ready.remove(thread)
        waiter = thread.waiting_for
        if waiter is not None:
            thread.waiting_for = None
            self._note_return(thread, waiter)
            nominal_ns = self._conditions.machine.handover_ns
            self._hand_over(thread, waiter, thread.next_place(), nominal_ns)

    def _hand_over(self, giver: Thread, taker: Thread, place: Place, nominal_ns: int) -> None:
        """Wake a thread from the last point that the other passed."""
        since_ns = max(giver.clock_ns, taker.clock_ns)
        latency_ns = self._conditions.takes_ns(nominal_ns, Kind.HANDOVER, "", place, Role.LATENCY)
        taker.clock_ns = since_ns + latency_ns
        if giver.last is not None:
            named = taker.label if taker is not self._autograd else giver.label
            taker.owed.append(Cause(giver.last, Kind.HANDOVER, named))
        self._ready.append(taker)

    def _note_return(self, thread: Thread, waiter: Thread) -> None:
        waited_ns = max(0, thread.clock_ns - waiter.clock_ns)
        wait = Wait(Kind.HANDOVER, waiter.label, None, waited_ns)
        self._timeline.waits.append(wait)

    def _perform(self, thread: Thread, item: Item) -> None:
        place = thread.next_place()
        match item:
            case Busy():
                self._work(thread, item, place)
            case Frame():
                self._open(thread, item, place)
            case Backward():
                self._backward(thread, item)
            case Start():
                self._hand_over(thread, self._helpers[item.helper], place, item.nominal_ns)
            case Put():
                self._put(thread, item, place)
            case Get():
                self._get(thread, item, place)
            case StartRecording():
                self._timeline.recorded_from_ns = thread.clock_ns
            case Memory():
                note = Note(thread.clock_ns, thread.number, item.bytes, item.device)
                self._timeline.notes.append(note)
            case _:
                self._call(thread, item, place)

    def _call(self, thread: Thread, item: Item, place: Place) -> None:
        calls = self._calls
        match item:
            case Launch():
                calls.launch(thread, item, place)
            case Joint():
                calls.joint(thread, item, place)
            case Replay():
                calls.replay(thread, item, place)
            case Call():
                calls.plain(thread, item, place)
            case RecordEvent():
                calls.record_event(thread, item, place)
            case WaitEvent():
                calls.wait_event(thread, item, place)
            case Synchronize():
                calls.synchronize(thread, item, place)
            case Poll():
                calls.poll(thread, item, place)

    def _work(self, thread: Thread, busy: Busy, place: Place) -> None:
        inside = thread.stack[-1]
        name = "" if inside.label is None else inside.label.name
        thread.clock_ns += self._conditions.takes_ns(
            busy.nominal_ns, inside.kind, name, place, Role.DURATION
        )

    def _open(self, thread: Thread, frame: Frame, place: Place) -> None:
        outer = thread.stack[-1]
        body = iter(frame.body)
        if frame.category == "python_function" and not self._record_python:
            thread.stack.append(outer.unseen(body))
            return
        timeline = self._timeline
        activity = thread.begin(timeline, frame.category, frame.name, frame.args, place)
        activity.sequence, activity.step = frame.sequence, frame.step
        if frame.category != "python_function":
            activity.external_id = self._next_external_id()
        thread.stack.append(outer.inner(frame, activity, body))

    def _close(self, thread: Thread) -> None:
        activity = thread.stack[-1].activity
        if activity is None:
            thread.stack.pop()
            return
        activity.end = thread.pass_point()
        thread.stack.pop()

    def _backward(self, thread: Thread, item: Backward) -> None:
        autograd = self._autograd
        autograd.stack[0].items = iter(item.body)
        autograd.waiting_for = thread
        self._ready.remove(thread)
        nominal_ns = self._conditions.machine.handover_ns
        self._hand_over(thread, autograd, thread.next_place(), nominal_ns)

    def _put(self, thread: Thread, item: Put, place: Place) -> None:
        """Wake who waits for an entry, or leave one, or wait until there is room."""
        queue = self._queues[item.queue]
        if queue.takers:
            self._hand_over(thread, queue.takers.popleft(), place, item.wake_ns)
        elif queue.n_held < item.capacity:
            queue.n_held += 1
        else:
            queue.givers.append(thread)
            self._ready.remove(thread)

    def _get(self, thread: Thread, item: Get, place: Place) -> None:
        """Use a queue entry and resume threads that wait for room, or wait for an entry."""
        queue = self._queues[item.queue]
        if queue.n_held == 0:
            queue.takers.append(thread)
            self._ready.remove(thread)
        elif queue.givers:
            self._hand_over(thread, queue.givers.popleft(), place, item.wake_ns)
        else:
            queue.n_held -= 1

    def _next_external_id(self) -> int:
        self._external_id += 1
        return self._external_id
