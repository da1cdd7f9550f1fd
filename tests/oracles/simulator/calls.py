"""Runtime calls: what they ask of devices, and how long they hold the thread that makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .changes import Kind
from .devices import Devices, Recorded, Submission, place_of_part
from .machine import Place, Role
from .timeline import Activity, Cause, Moment, Sync, Timeline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .changes import Conditions
    from .program import (
        Call,
        Joint,
        Launch,
        Poll,
        RecordEvent,
        Replay,
        Stream,
        Synchronize,
        WaitEvent,
    )
    from .threads import Thread

_DOORBELL_SHARE = 0.6  # how far into its call a launch rings, where it rings early
_EVENT_CALL_NS = 1_500
_QUERY_NS = 900
_MOST_QUERIES = 100_000


class Calls:
    """All calls of a run: the numbers and the events given out so far."""

    def __init__(self, conditions: Conditions, timeline: Timeline, devices: Devices) -> None:
        self._conditions = conditions
        self._timeline = timeline
        self._devices = devices
        self._events: dict[int, Recorded] = {}
        self._correlation = 0

    def plain(self, thread: Thread, item: Call, place: Place) -> None:
        """Make a call that neither launches nor waits."""
        call = self._begin(thread, item.category, item.name, place)
        self._end(thread, call, self._own_end_ns(call, item.nominal_ns))

    # Waiting

    def record_event(self, thread: Thread, item: RecordEvent, place: Place) -> None:
        """Record an event on a stream."""
        call = self._begin(thread, "cuda_runtime", "cudaEventRecord", place)
        self._events[item.event] = self._devices.recorded(item.stream, call)
        self._end(thread, call, self._own_end_ns(call, _EVENT_CALL_NS))

    def wait_event(self, thread: Thread, item: WaitEvent, place: Place) -> None:
        """Make a stream wait for an event."""
        call = self._begin(thread, "cuda_runtime", "cudaStreamWaitEvent", place)
        recorded = self._events.get(item.event)
        if recorded is not None:
            call.sync = _event_sync("Stream Wait Event", recorded, item.event, item.stream)
            self._devices.let_wait(item.stream, recorded)
        self._end(thread, call, self._own_end_ns(call, _EVENT_CALL_NS))

    def synchronize(self, thread: Thread, item: Synchronize, place: Place) -> None:
        """Wait for an event, a stream or a device."""
        name, awaited, sync = self._scope(item)
        call = self._begin(thread, "cuda_runtime", name, place)
        call.sync = sync
        own_end_ns = self._own_end_ns(call, item.nominal_ns)
        self._end(thread, call, *self._held(call, own_end_ns, awaited, Kind.SYNC_RETURN))

    def _scope(self, item: Synchronize) -> tuple[str, Activity | None, Sync | None]:
        """Return the name of a synchronising call, the work it waits for, and its record."""
        if item.event is not None:
            name = item.name or "cudaEventSynchronize"
            recorded = self._events.get(item.event)
            if recorded is None:  # CUDA waits for no event that was never recorded
                return name, None, None
            return name, recorded.last, _event_sync("Event Sync", recorded, item.event, None)
        if item.stream is not None:
            sync = Sync("Stream Sync", item.stream, item.stream.device)
            return item.name or "cudaStreamSynchronize", self._devices.last_on(item.stream), sync
        last = self._devices.last_to_end(item.device)
        if item.name is not None:
            return item.name, last, None
        return "cudaDeviceSynchronize", last, Sync("Context Sync", None, item.device)

    def poll(self, thread: Thread, item: Poll, place: Place) -> None:
        """Ask whether an event happened until it did: a wait made of many calls."""
        awaited = self._events[item.event].last
        first = call = self._query(thread, item, place)
        n_queries = 1
        while awaited is not None and call.start.time_ns < awaited.end.time_ns:
            self._rest(thread, item, place._replace(part=n_queries))
            call = self._query(thread, item, place._replace(part=n_queries))
            n_queries += 1
            if n_queries > _MOST_QUERIES:
                message = "a loop polled far too often"
                raise ValueError(message)
        if awaited is not None and call is not first:
            self._timeline.note_wait(Kind.SYNC_RETURN, call, awaited, first.start.time_ns)
            own = Cause(first.start, Kind.RUNTIME, first)
            call.end.causes = [own, Cause(awaited.end, Kind.SYNC_RETURN, call)]

    def _query(self, thread: Thread, item: Poll, place: Place) -> Activity:
        call = self._begin(thread, "cuda_runtime", item.name, place)
        self._end(thread, call, self._own_end_ns(call, _QUERY_NS))
        return call

    def _rest(self, thread: Thread, item: Poll, place: Place) -> None:
        """Pass the time between two queries."""
        inside = thread.stack[-1]
        name = "" if inside.label is None else inside.label.name
        thread.clock_ns += self._conditions.takes_ns(
            item.rest_ns, inside.kind, name, place, Role.GAP
        )

    # Launching

    def launch(self, thread: Thread, item: Launch, place: Place) -> None:
        """Hand work to a stream."""
        args = {"graph id": 1} if len(item.works) > 1 else {}
        call = self._begin(thread, item.category, item.name, place, args)
        blocker = self._devices.blocker(item.stream, call)
        own_end_ns = self._own_end_ns(call, item.nominal_ns)
        end_ns, causes = self._held(call, own_end_ns, blocker, Kind.QUEUE_FULL)
        if blocker is not None:
            end_ns = max(end_ns, call.start.time_ns + self._conditions.machine.queue_poll_ns)
        doorbell_ns = self._doorbell_ns(call, end_ns)
        if item.blocking:
            self._devices.submit(item, call, doorbell_ns, inside=True)
            end_ns, waits = self._held(call, end_ns, call.works[-1], Kind.SYNC_RETURN)
            self._end(thread, call, end_ns, [*waits, *causes])
        elif doorbell_ns < end_ns and self._rings_early(item, call, doorbell_ns):
            self._devices.submit(item, call, doorbell_ns, inside=True)
            self._end(thread, call, end_ns, causes)
        else:
            self._end(thread, call, end_ns, causes)
            self._devices.submit(item, call, self._arrival_ns(item, call), inside=False)

    def joint(self, thread: Thread, item: Joint, place: Place) -> None:
        """Launch one collective on several devices, as a group of NCCL does."""
        submissions = []
        for part, launch in enumerate(item.launches):
            call_place = place._replace(part=part << 8)
            call = self._begin(thread, launch.category, launch.name, call_place)
            self._end(thread, call, self._own_end_ns(call, launch.nominal_ns))
            submissions.append(Submission(launch, call, self._arrival_ns(launch, call)))
        self._devices.submit_joint(submissions)

    def replay(self, thread: Thread, item: Replay, place: Place) -> None:
        """Launch a captured graph."""
        args = {} if item.graph is None else {"graph id": item.graph}
        call = self._begin(thread, "cuda_runtime", "cudaGraphLaunch", place, args)
        self._end(thread, call, self._own_end_ns(call, item.nominal_ns))
        self._devices.submit_graph(item, call, self._latency_after(call, item.nodes[0].work.name))

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
        return self._latency_after(call, item.works[0].name)

    def _latency_after(self, call: Activity, name: str) -> int:
        nominal_ns = self._conditions.machine.launch_latency_ns
        return call.end.time_ns + self._conditions.takes_ns(
            nominal_ns, Kind.LAUNCH, name, call.place, Role.LATENCY
        )

    # Calls themselves

    def _begin(
        self,
        thread: Thread,
        category: str,
        name: str,
        place: Place,
        args: Mapping[str, int] | None = None,
    ) -> Activity:
        call = thread.begin(self._timeline, category, name, args or {}, place)
        self._correlation += 1
        call.correlation = self._correlation
        call.external_id = thread.external_id()
        return call

    def _end(
        self, thread: Thread, call: Activity, end_ns: int, causes: Sequence[Cause] = ()
    ) -> None:
        thread.clock_ns = end_ns
        own = Cause(call.start, Kind.RUNTIME, call)
        call.end = thread.last = Moment(end_ns, [own, *causes])

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


def _event_sync(kind: str, recorded: Recorded, event: int, stream: Stream | None) -> Sync:
    """Return the record of a wait: its device is that of the stream that waits, if one does."""
    waits_on = (recorded.stream, recorded.correlation)
    device = recorded.stream.device if stream is None else stream.device
    return Sync(kind, stream, device, waits_on, event)
