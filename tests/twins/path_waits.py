"""Calls that wait for a device: as recorded, and as inferred where nothing was recorded."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING

from . import path_limits as limits
from .path_devices import API, Devices, inside_edge, latest_to_end
from .path_edges import Edge, Evidence, Kind, Points, Role
from .path_events import (
    CONTEXT_SYNC,
    EVENT_SYNC,
    STREAM_WAIT,
    Event,
    EventClass,
    Lane,
    SyncRecord,
    Trace,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DEVICE_SYNC_CALL = re.compile(API + "(?:Device|Ctx)Synchronize")
STREAM_SYNC_CALL = re.compile(API + "StreamSynchronize")
EVENT_SYNC_CALL = re.compile(API + "EventSynchronize")
RECORD_CALL = re.compile(API + "EventRecord")
QUERY_CALL = re.compile(API + "(?:Event|Stream)Query")
IMPLICIT_SYNC_CALL = re.compile(
    API
    + r"(?:Mem)?(?:Free|Malloc|Alloc|Host(?:Alloc|Malloc|Free|Register|Unregister)"
    + r"|ModuleLoad|ModuleUnload|LibraryLoad)(?!.*Async)"
)
"""Freeing, allocating, pinning host memory and loading code may wait for the whole device."""


def recorded_stream_waits(
    trace: Trace, points: Points, devices: Devices
) -> dict[Event, list[Edge]]:
    """Give the edges of recorded waits between streams, by the work that waits."""
    waits: dict[Event, list[Edge]] = defaultdict(list)
    for record in trace.records:
        if record.kind != STREAM_WAIT or not record.is_known:
            continue
        asked_ns = _asked_ns(record, devices)
        waiter = devices.stream(record.device, record.stream).next_submitted_after(asked_ns)
        waited = devices.stream(record.device, record.waited_stream)
        producer = waited.last_submitted_before(_recorded_ns(record, asked_ns, devices))
        if waiter and producer and waiter is not producer:
            source, target = points.end(producer), points.start(waiter)
            kind, role = Kind.EVENT_WAIT, Role.EVENT_WAIT
            edge = Edge(source, target, kind, role, waiter, Evidence.RECORDED, record.row)
            waits[waiter].append(edge)
    return waits


def _asked_ns(record: SyncRecord, devices: Devices) -> int:
    """Give when the host asked to wait."""
    call = devices.launches.call(record.correlation, record.start_ns)
    return call.start_ns if call else record.start_ns


def _recorded_ns(record: SyncRecord, asked_ns: int, devices: Devices) -> int:
    """Give when the event waited for was recorded; at the latest when it was waited for."""
    call = devices.launches.call(record.record_correlation, asked_ns)
    return call.start_ns if call else asked_ns


def call_edges(trace: Trace, points: Points, devices: Devices) -> Iterator[Edge]:
    """Give the edges into the ends of calls that waited for a device."""
    recorded = _recorded_syncs(trace, devices)
    inference = _Inference(trace, devices)
    for call in trace.events:
        if call.event_class is not EventClass.RUNTIME:
            continue
        if call in recorded:
            for producer, row in recorded[call]:
                yield _return_edge(producer, call, Evidence.RECORDED, points, row)
        else:
            yield from _inferred_edges(call, inference, points)
        blocker = _freed_queue(call, devices)
        if blocker:
            source, target = points.end(blocker), points.end(call)
            kind, role = Kind.QUEUE_FULL, Role.QUEUE_FULL
            yield Edge(source, target, kind, role, call, Evidence.INFERRED)


def _return_edge(
    producer: Event, call: Event, evidence: Evidence, points: Points, row: int | None = None
) -> Edge:
    """Let the call end with the work; work that ends a little later by the clock is cut off."""
    source, target = points.end(producer), points.end(call)
    late_ns = producer.end_ns - call.end_ns
    if 0 < late_ns <= limits.CLOCK_TOLERANCE_NS and producer.start_ns < call.end_ns:
        edge = inside_edge(producer, target, Role.SYNC_INSIDE, points)
        return Edge(edge.source, target, edge.kind, edge.role, producer, evidence, row)
    return Edge(source, target, Kind.SYNC_RETURN, Role.SYNC, call, evidence, row)


Producers = list[tuple[Event, int]]


def _recorded_syncs(trace: Trace, devices: Devices) -> dict[Event, Producers]:
    """For all calls a record covers, give what they waited for: work and row of the record."""
    found: dict[Event, Producers] = defaultdict(list)
    for record in trace.records:
        call = devices.launches.call(record.correlation, record.start_ns)
        if not record.is_known:
            trace.counts["unknown_sync"] += 1
        elif call is None:
            trace.counts["sync_without_call"] += 1
        elif record.kind != STREAM_WAIT:
            producers = _recorded_producers(record, call, devices)
            found[call].extend((producer, record.row) for producer in producers)
    return found


def _recorded_producers(record: SyncRecord, call: Event, devices: Devices) -> Iterator[Event]:
    if QUERY_CALL.search(call.name):
        return
    before_ns, lanes = call.start_ns, [_stream_lane(record.device, record.stream)]
    if record.kind == EVENT_SYNC:
        before_ns = _recorded_ns(record, call.start_ns, devices)
        lanes = [_stream_lane(record.device, record.waited_stream)]
    elif record.kind == CONTEXT_SYNC:
        lanes = devices.lanes_of(record.device)
    for lane in lanes:
        producer = devices.stream(lane.owner, lane.number).last_finished_before(before_ns)
        if producer:
            yield producer


def _stream_lane(device: object, number: object) -> Lane:
    return Lane(is_stream=True, owner=device, number=number)


def _freed_queue(call: Event, devices: Devices) -> Event | None:
    """Find the work whose end made room for a launch that had found its stream's queue full."""
    works = devices.launches.work_of.get(call)
    if not works or call.duration_ns <= limits.LONG_LAUNCH_NS:
        return None
    lane = works[0].lane
    before = devices.streams[lane].submitted_before(call.start_ns)
    outstanding = [work for work in before if work.end_ns > call.start_ns]
    if len(outstanding) < limits.FULL_QUEUE_OPERATIONS:
        return None
    return latest_to_end(work for work in outstanding if work.end_ns <= call.end_ns)


class _Inference:
    """What the guesses about calls without record are made from."""

    def __init__(self, trace: Trace, devices: Devices) -> None:
        self.devices = devices
        self._launched: dict[Lane, list[tuple[int, object]]] = defaultdict(list)
        for call, works in devices.launches.work_of.items():
            self._launched[call.lane].append((call.start_ns, works[0].lane.owner))
        for launched in self._launched.values():
            launched.sort(key=lambda launch: launch[0])
        records = [event for event in trace.events if RECORD_CALL.search(event.name)]
        self.has_record_calls = bool(records)
        self.last_at_record: set[Event] = {
            work
            for record in records
            for stream in devices.streams.values()
            if (work := stream.last_submitted_before(record.start_ns))
        }

    def lanes_of_device(self, call: Event) -> list[Lane]:
        """List the streams of the device the calling thread launched on last."""
        launched = self._launched[call.lane]
        count = bisect_right(launched, call.start_ns, key=lambda launch: launch[0])
        if count:
            return self.devices.lanes_of(launched[count - 1][1])
        only_device = len({lane.owner for lane in self.devices.streams}) == 1
        return list(self.devices.streams) if only_device else []

    def last_finished(self, lanes: Sequence[Lane], call: Event) -> list[Event]:
        """List what finishes last on each stream, of the work submitted before the call."""
        found = (self.devices.streams[lane].last_finished_before(call.start_ns) for lane in lanes)
        return [work for work in found if work]


def _inferred_edges(call: Event, inference: _Inference, points: Points) -> Iterator[Edge]:
    if call.duration_ns < limits.SHORTEST_WAIT_NS:
        return
    copies = [
        work
        for work in inference.devices.launches.work_of.get(call, [])
        if work.category == "gpu_memcpy"
    ]
    if copies:
        yield from _copy_edges(copies, call, points)
        return
    producer = latest_to_end(_candidates(call, inference))
    if producer:
        yield _return_edge(producer, call, Evidence.INFERRED, points)


def _copy_edges(copies: Sequence[Event], call: Event, points: Points) -> Iterator[Edge]:
    """Let a call end with its copy if the copy was over by then.

    The driver stages pageable memory itself: such a call may return while the copy still runs.
    """
    copy = max(copies, key=lambda work: (work.end_ns, -work.rank))
    pageable = "Pageable" in copy.name
    blocks = pageable or "Async" not in call.name
    late_ns = copy.end_ns - call.end_ns
    if copy.start_ns >= call.end_ns:
        return  # launched by it, not waited for
    if late_ns <= (limits.CLOCK_TOLERANCE_NS if blocks else 0):
        yield _return_edge(copy, call, Evidence.INFERRED, points)
    elif pageable and call.start_ns <= copy.start_ns:
        source, target = points.start(copy), points.end(call)
        yield Edge(source, target, Kind.RUNTIME, Role.STAGING, call, Evidence.INFERRED)


def _candidates(call: Event, inference: _Inference) -> list[Event]:
    """List the work that the call may have waited for, by what calls of its name wait for."""
    devices = inference.devices
    if DEVICE_SYNC_CALL.search(call.name):
        return _ending_in(call, inference.last_finished(inference.lanes_of_device(call), call))
    if STREAM_SYNC_CALL.search(call.name):
        return _ending_in(call, inference.last_finished(list(devices.streams), call))
    if EVENT_SYNC_CALL.search(call.name):
        return _ending_in(call, _marked_by_events(call, inference))
    if IMPLICIT_SYNC_CALL.search(call.name):
        return _implicit_candidates(call, inference)
    return []


def _ending_in(call: Event, works: Sequence[Event]) -> list[Event]:
    latest_ns = call.end_ns + limits.CLOCK_TOLERANCE_NS
    return [
        work
        for work in works
        if call.start_ns < work.end_ns <= latest_ns and work.start_ns < call.end_ns
    ]


def _marked_by_events(call: Event, inference: _Inference) -> list[Event]:
    """List submitted work that was the last of its stream when some event was recorded."""
    return [
        work
        for stream in inference.devices.streams.values()
        for work in stream.submitted_before(call.start_ns)
        if not inference.has_record_calls or work in inference.last_at_record
    ]


def _implicit_candidates(call: Event, inference: _Inference) -> list[Event]:
    """Believe that such a call waited only if the device fell idle shortly before its end."""
    works = inference.last_finished(inference.lanes_of_device(call), call)
    numerator, denominator = limits.IMPLICIT_RETURN_SHARE
    share_ns = call.duration_ns * numerator // denominator
    earliest_ns = call.end_ns - max(limits.IMPLICIT_RETURN_NS, share_ns)
    last_ns = max((work.end_ns for work in works), default=call.end_ns + 1)
    if last_ns > call.end_ns or last_ns < earliest_ns:
        return []
    return _ending_in(call, works)
