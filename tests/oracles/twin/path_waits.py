"""Calls that wait for a device: as recorded, and as inferred where nothing was recorded."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from . import path_limits as limits
from .path_devices import Devices, inside_edge, latest_to_end
from .path_edges import Edge, Evidence, Kind, Points, Role
from .path_events import (
    API,
    CONTEXT_SYNC,
    EVENT_SYNC,
    STREAM_WAIT,
    Event,
    EventClass,
    Lane,
    SyncRecord,
    Trace,
)
from .path_hints import Mark
from .path_streams import finish_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

DEVICE_SYNC_CALL = re.compile(
    API + "(?:DeviceSynchronize|CtxSynchronize|SynchronizeDevice)|^synchronize(?:Device.*)?$"
)
STREAM_SYNC_CALL = re.compile(
    API + "(?:StreamSynchronize|SynchronizeStream|CommandQueueSynchronize|QueueFinish"
    "|CommandListHostSynchronize)|^synchronizeStream|^sycl::queue::wait"
)
EVENT_SYNC_CALL = re.compile(
    API + "(?:EventSynchronize|SynchronizeEvent|EventHostSynchronize|FenceHostSynchronize"
    "|Events?Wait)|^synchronizeEvent|^sycl::event::wait"
)
QUERY_CALL = re.compile(API + "(?:(?:Event|Stream)Query|Query(?:Event|Stream)|FenceQuery)")
IMPLICIT_SYNC_CALL = re.compile(
    API
    + r"(?:(?:Mem)?(?:Free|Malloc|ExtMalloc|Alloc|Host(?:Alloc|Malloc|Free|Register|Unregister)"
    + r"|ModuleLoad|ModuleUnload|LibraryLoad|LibraryUnload|CtxDestroy)"
    + r"|Mem(?:Create|Map|Unmap|SetAccess|Release|AddressReserve|AddressFree)|DeviceReset"
    + r"|Module(?:Create|Destroy)|USM(?:Free|(?:Device|Host|Shared)Alloc)"
    + r"|Program(?:Build|Link|CreateWith))(?!.*Async)"
)
"""Freeing, allocating, mapping, pinning host memory and loading code may wait for the device."""


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
        waited = _recorded_on(record, asked_ns, devices)
        recorded_ns = _recorded_ns(record, asked_ns, devices)
        other = devices.stream(*waited)
        producer = other.last_submitted_before(recorded_ns)
        if waiter:
            after_ns = waiter.start_ns - limits.WAIT_RELEASE_NS - 1
            producer = other.unlinked_in(recorded_ns, after_ns, waiter.start_ns) or producer
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


def _recorded_on(record: SyncRecord, asked_ns: int, devices: Devices) -> tuple[object, object]:
    """Give device and number of the stream on which an event waited for was recorded.

    The record names the device that waits. Its own stream of that number is meant, unless that is
    the one that waits; then, of several devices, the one the recording thread launched on last.
    """
    call = devices.launches.call(record.record_correlation, asked_ns)
    lanes = [lane for lane in devices.streams if lane.number == record.waited_stream]
    named = (record.device, record.waited_stream)
    waits_for_itself = record.stream == record.waited_stream
    is_open = waits_for_itself or _stream_lane(*named) not in devices.streams
    if call is None or len(lanes) < 2 or not is_open:
        return named
    launched: dict[Lane, int] = {}
    for lane in lanes:
        work = devices.streams[lane].last_submitted_before(call.start_ns)
        launcher = devices.launches.call_of(work) if work else None
        if launcher and launcher.lane == call.lane:
            launched[lane] = launcher.start_ns
    if not launched:
        return named
    last = max(launched, key=lambda lane: launched[lane])
    return (last.owner, last.number)


def call_edges(trace: Trace, points: Points, devices: Devices) -> Iterator[Edge]:
    """Give the edges into the ends of calls that waited for a device."""
    recorded = recorded_syncs(trace, devices)
    inference = _Inference(devices)
    never_waiting = _never_waiting(trace, inference)
    for call in trace.events:
        if call.event_class is not EventClass.RUNTIME:
            continue
        if call in recorded:
            for producer, row in recorded[call]:
                yield _return_edge(producer, call, Evidence.RECORDED, points, row)
        elif call.name not in never_waiting:
            yield from _inferred_edges(call, inference, points)
        blocker = _freed_queue(call, devices)
        if blocker:
            source, target = points.end(blocker), points.end(call)
            kind, role = Kind.QUEUE_FULL, Role.QUEUE_FULL
            yield Edge(source, target, kind, role, call, Evidence.INFERRED)


def _never_waiting(trace: Trace, inference: _Inference) -> set[str]:
    """Learn which names of implicit waits do not wait: their calls return while work goes on."""
    returned: dict[str, list[bool]] = defaultdict(list)
    for call in trace.events:
        is_asked = call.event_class is EventClass.RUNTIME and IMPLICIT_SYNC_CALL.search(call.name)
        if not is_asked or call.duration_ns < limits.LONG_SYNC_NS:
            continue
        works = inference.last_finished(inference.lanes_of_device(call), call)
        last_ns = max((work.end_ns for work in works), default=call.start_ns)
        if last_ns > call.start_ns + limits.OUTSTANDING_NS:
            returned[call.name].append(last_ns > call.end_ns + limits.CLOCK_TOLERANCE_NS)
    part = limits.NEVER_WAITING_PART
    return {name for name, early in returned.items() if 0 < len(early) <= sum(early) * part}


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


def recorded_syncs(trace: Trace, devices: Devices) -> dict[Event, Producers]:
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
        lanes = [_stream_lane(*_recorded_on(record, call.start_ns, devices))]
    elif record.kind == CONTEXT_SYNC:
        lanes = devices.lanes_of(record.device)
    for lane in lanes:
        producer = devices.stream(lane.owner, lane.number).last_awaited(before_ns, call)
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

    def __init__(self, devices: Devices) -> None:
        self.devices = devices

    def lanes_of_device(self, call: Event) -> list[Lane]:
        """List the streams of the device the calling thread launched on last."""
        recent = self.devices.recent.before(call)
        if recent:
            return self.devices.lanes_of(recent[0].owner)
        only_device = len({lane.owner for lane in self.devices.streams}) == 1
        return list(self.devices.streams) if only_device else []

    def may_mean_several(self, call: Event) -> bool:
        """Say whether a call waits for one of several devices of its process."""
        recent = self.devices.recent.before(call)
        waits = bool(DEVICE_SYNC_CALL.search(call.name))
        return waits and bool(recent) and bool(self.devices.siblings(recent[0].owner))

    def last_finished(self, lanes: Sequence[Lane], call: Event) -> list[Event]:
        """List what finishes last on each stream, of the work submitted before the call."""
        streams = (self.devices.streams[lane] for lane in lanes)
        found = (stream.last_awaited(call.start_ns, call) for stream in streams)
        return [work for work in found if work]

    def submitted(self, call: Event, least: Mark) -> list[Event]:
        """List the work submitted before the call that is marked at least so."""
        return [
            work
            for stream in self.devices.streams.values()
            for work in stream.works
            if self.devices.launches.earliest_submission_ns(work) < call.start_ns
            if self.devices.marks.of(work) >= least
        ]


def _inferred_edges(call: Event, inference: _Inference, points: Points) -> Iterator[Edge]:
    if call.duration_ns < limits.SHORTEST_WAIT_NS and not inference.may_mean_several(call):
        return
    copies = [
        work
        for work in inference.devices.launches.work_of.get(call, [])
        if work.category == "gpu_memcpy"
    ]
    if copies:
        yield from _copy_edges(copies, call, points)
        return
    producer = _producer(call, inference)
    if producer:
        yield _return_edge(producer, call, Evidence.INFERRED, points)


def _copy_edges(copies: Sequence[Event], call: Event, points: Points) -> Iterator[Edge]:
    """Let a call end with its copy if the copy was over by then.

    The driver stages pageable memory itself: such a call may return while the copy still runs.
    """
    copy = max(copies, key=lambda work: (work.end_ns, -work.rank))
    pageable = copy.is_pageable
    blocks = pageable or "Async" not in call.name
    late_ns = copy.end_ns - call.end_ns
    if copy.start_ns >= call.end_ns:
        return  # launched by it, not waited for
    if late_ns <= (limits.CLOCK_TOLERANCE_NS if blocks else 0):
        yield _return_edge(copy, call, Evidence.INFERRED, points)
    elif pageable and call.start_ns <= copy.start_ns:
        source, target = points.start(copy), points.end(call)
        yield Edge(source, target, Kind.RUNTIME, Role.STAGING, call, Evidence.INFERRED)


def _producer(call: Event, inference: _Inference) -> Event | None:
    """Find the work that the call waited for, by what calls of its name wait for."""
    if DEVICE_SYNC_CALL.search(call.name):
        found = _last_idle_device(call, inference)
        if found or call.duration_ns < limits.SHORTEST_WAIT_NS:
            return found
        works = inference.last_finished(inference.lanes_of_device(call), call)
        return _last_ending_in(call, works, limits.CLOCK_TOLERANCE_NS)
    if STREAM_SYNC_CALL.search(call.name):
        return _work_of_some_stream(call, inference)
    if EVENT_SYNC_CALL.search(call.name):
        return _marked_work(call, inference)
    if IMPLICIT_SYNC_CALL.search(call.name):
        return _implicit_producer(call, inference)
    return None


def _last_idle_device(call: Event, inference: _Inference) -> Event | None:
    """Find the last work of the device that fell idle last in the call, of several."""
    if not inference.may_mean_several(call):
        return None
    devices = inference.devices
    lanes = devices.lanes_of_process(devices.recent.before(call)[0].owner)
    last: dict[object, Event] = {}
    for work in inference.last_finished(lanes, call):
        others = [last[work.lane.owner]] if work.lane.owner in last else []
        last[work.lane.owner] = max(*others, work, key=finish_order) if others else work
    latest_ns = call.end_ns - limits.QUICKEST_RETURN_NS
    return latest_to_end(w for w in last.values() if call.start_ns < w.end_ns <= latest_ns)


def _last_ending_in(call: Event, works: Sequence[Event], tolerance_ns: int) -> Event | None:
    """Choose what ends last in the call, or so much after it."""
    latest_ns = call.end_ns + tolerance_ns
    return latest_to_end(
        work
        for work in works
        if call.start_ns < work.end_ns <= latest_ns and work.start_ns < call.end_ns
    )


def _work_of_some_stream(call: Event, inference: _Inference) -> Event | None:
    """Find what a call waited for that does not say for which stream."""
    every = inference.last_finished(list(inference.devices.streams), call)
    if len(inference.devices.streams) == 1:
        return _last_ending_in(call, every, limits.CLOCK_TOLERANCE_NS)
    lately = inference.last_finished(inference.devices.recent.before(call), call)
    if call.duration_ns < limits.LONG_SYNC_NS and lately:
        over = [work for work in lately if work.end_ns <= call.end_ns]
        if over and call.end_ns - over[0].end_ns >= limits.QUICKEST_RETURN_NS:
            return _last_ending_in(call, over[:1], 0)
        return None
    own = inference.last_finished(inference.devices.recent_with_backward.before(call), call)
    for works in (own, every):
        for least_ns in (limits.QUICKEST_RETURN_NS, 0):
            over = [work for work in works if call.end_ns - work.end_ns >= least_ns]
            last = _last_ending_in(call, over, 0)
            if last and _has_just_ended(last, call):
                return last
    soon_over = [work for work in lately[:1] if work.end_ns > call.end_ns]
    found = _last_ending_in(call, soon_over, limits.CLOCK_TOLERANCE_NS)
    return found or _last_ending_in(call, every, limits.CLOCK_TOLERANCE_NS)


def _has_just_ended(work: Event, call: Event) -> bool:
    return call.end_ns - work.end_ns <= limits.SYNC_RETURN_NS


def _marked_work(call: Event, inference: _Inference) -> Event | None:
    """Find what a call waited for that does not say for which event."""
    likely = inference.submitted(call, Mark.LIKELY)
    possible = inference.submitted(call, Mark.POSSIBLE)
    if not inference.devices.marks.has_records:
        return _last_ending_in(call, possible, limits.CLOCK_TOLERANCE_NS)
    own = _recorded_by_caller(call, likely, inference)
    if call.duration_ns < limits.LONG_SYNC_NS:
        return _last_ending_in(call, likely if own is None else own, 0)
    for works in (own or [], likely, possible):
        over = _last_ending_in(call, works, 0)
        if over and _has_just_ended(over, call):
            return over
    for works in (own or [], likely):
        found = _last_ending_in(call, works, limits.CLOCK_TOLERANCE_NS)
        if found:
            return found
    return _last_ending_in(call, possible, 0)


def _recorded_by_caller(
    call: Event, likely: Iterable[Event], inference: _Inference
) -> list[Event] | None:
    """Keep what the caller or its backward thread recorded behind; none where it records none."""
    marks, pairs = inference.devices.marks, inference.devices.pairs
    if call.lane not in marks.recorded_by.values():
        return None
    threads = {call.lane, *(backward for forward, backward in pairs if forward == call.lane)}
    return [work for work in likely if marks.recorded_by.get(work) in threads]


def _implicit_producer(call: Event, inference: _Inference) -> Event | None:
    """Believe that such a call waited only if the device fell idle shortly before its end."""
    works = inference.last_finished(inference.lanes_of_device(call), call)
    numerator, denominator = limits.IMPLICIT_RETURN_SHARE
    share_ns = call.duration_ns * numerator // denominator
    earliest_ns = call.end_ns - max(limits.IMPLICIT_RETURN_NS, share_ns)
    last_ns = max((work.end_ns for work in works), default=call.end_ns + 1)
    if last_ns > call.end_ns or last_ns < earliest_ns:
        return None
    return _last_ending_in(call, works, limits.CLOCK_TOLERANCE_NS)
