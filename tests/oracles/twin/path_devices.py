"""Devices: who launched what, the order on a stream, and why a kernel starts when it starts."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from . import path_limits as limits
from .path_edges import Edge, Evidence, Kind, Points, Role
from .path_events import API, STREAM_WAIT, Event, EventClass, Lane, Trace
from .path_hints import WAIT_CALL, Mark, Marks, Recent
from .path_pairs import is_asked_just_now, latent_waits, paired_work
from .path_streams import Launches, Stream, finish_order
from .path_threads import autograd_threads
from .trace_events import COMMUNICATION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

GRAPH_LAUNCH = re.compile(API + "(?:GraphLaunch|EnqueueCommandBuffer|CommandBufferEnqueue)")

MOST_UNLINKED = 64
"""So many GPU activities without a launcher are skipped to find one with."""

MOST_LIKELY = max(Mark) + 1
"""Work that is paired with a wait call is believed before any mark."""


class Devices:
    """All streams; a stream number means nothing without its device."""

    def __init__(self, trace: Trace) -> None:
        self.launches = Launches(trace)
        works: dict[Lane, list[Event]] = defaultdict(list)
        for event in trace.events:
            if event.event_class is EventClass.DEVICE:
                works[event.lane].append(event)
        self.streams = {lane: Stream(its, self.launches) for lane, its in works.items()}
        self.has_wait_calls = any(WAIT_CALL.search(event.name) for event in trace.events)
        self._ends = {lane: sorted(its, key=finish_order) for lane, its in works.items()}
        self.recent = Recent(trace, self.launches)
        self.pairs = autograd_threads(trace)
        self.recent_with_backward = Recent(trace, self.launches, self.pairs)
        self.marks = Marks(trace, self.launches, self.streams, self.recent)
        self.paired = paired_work(trace, self)

    def stream(self, device: object, number: object) -> Stream:
        lane = Lane(is_stream=True, owner=device, number=number)
        return self.streams.get(lane) or Stream([], self.launches)

    def lanes_of(self, device: object) -> list[Lane]:
        return [lane for lane in self.streams if lane.owner == device]

    def launching_threads(self, device: object) -> set[Lane]:
        """Give the threads that launch work of a device."""
        works = (work for lane in self.lanes_of(device) for work in self.streams[lane].works)
        return {call.lane for call in map(self.launches.call_of, works) if call}

    @property
    def has_siblings(self) -> bool:
        """Whether any process launches on several devices."""
        return any(self.siblings(lane.owner) for lane in self.streams)

    def siblings(self, device: object) -> list[object]:
        """List the other devices that the process of a device launches on."""
        process = self._process(device)
        others = dict.fromkeys(lane.owner for lane in self.streams if lane.owner != device)
        return [it for it in others if process is not None and self._process(it) == process]

    def _process(self, device: object) -> object | None:
        calls = (
            self.launches.call_of(work)
            for lane in self.lanes_of(device)
            for work in self.streams[lane].works
        )
        return next((call.lane.owner for call in calls if call), None)

    def lanes_of_process(self, device: object) -> list[Lane]:
        """List the streams of all devices that the process of a device launches on."""
        devices = {device, *self.siblings(device)}
        return [lane for lane in self.streams if lane.owner in devices]

    def ended_between(self, lane: Lane, after_ns: int, until_ns: int) -> Sequence[Event]:
        """List the work of a stream that ended in (after, until], in the order of the ends."""
        ends = self._ends[lane]
        first = bisect_right(ends, after_ns, key=lambda work: work.end_ns)
        return ends[first : bisect_right(ends, until_ns, key=lambda work: work.end_ns)]


def kind_of_work(work: Event) -> Kind:
    if work.category in {"gpu_memcpy", "gpu_memset"}:
        return Kind.COPY
    communicates = work.is_collective or COMMUNICATION.search(work.name)
    return Kind.COMMUNICATION if communicates else Kind.KERNEL


def inside_edge(holder: Event, target: int, role: Role, points: Points) -> Edge:
    """Make the edge that leaves a running kernel and takes its time up to ``target``."""
    kind = kind_of_work(holder)
    return Edge(points.start(holder), target, kind, role, holder, Evidence.INFERRED)


def device_edges(
    trace: Trace, points: Points, devices: Devices, recorded_waits: dict[Event, list[Edge]]
) -> Iterator[Edge]:
    """Give the edges into the start and the end of every piece of device work."""
    wait_calls = pending_wait_calls(trace, devices)
    asked_by_other = _asked_by_other(trace, devices)
    for stream in devices.streams.values():
        for work, last_finished, running in _neighbours(stream):
            yield from _end_edges(work, running, points)
            edges = [
                *_order_edges(work, last_finished, running, points),
                *_launch_edges(work, devices, points),
                *recorded_waits.get(work, []),
            ]
            pending = wait_calls.get(work, [])
            start = _Start(work, edges, running, pending, work in asked_by_other)
            yield from _explained(start, points, devices)


def _neighbours(stream: Stream) -> Iterator[tuple[Event, Event | None, list[Event]]]:
    """Give each work with the one that finished last before it, and those that still run then."""
    running: list[Event] = []
    last_finished: Event | None = None
    for work in stream.works:
        finished = [other for other in running if other.end_ns <= work.start_ns]
        running = [other for other in running if other.end_ns > work.start_ns]
        if last_finished:
            finished.append(last_finished)
        last_finished = max(finished, key=finish_order, default=None)
        yield work, last_finished, running
        running = [*running, work]


def _end_edges(work: Event, running: Iterable[Event], points: Points) -> Iterator[Edge]:
    start, end, kind = points.start(work), points.end(work), kind_of_work(work)
    yield Edge(start, end, kind, Role.DEVICE_WORK, work, Evidence.ORDER)
    for other in running:
        if other.end_ns < work.end_ns:
            yield Edge(points.end(other), end, kind, Role.OVERLAP_TAIL, work, Evidence.ORDER)


def _order_edges(
    work: Event, last_finished: Event | None, running: Sequence[Event], points: Points
) -> Iterator[Edge]:
    start = points.start(work)
    if last_finished:
        source = points.end(last_finished)
        yield Edge(source, start, Kind.KERNEL_DELAY, Role.STREAM_ORDER, work, Evidence.ORDER)
    if running:
        source = points.start(running[-1])
        yield Edge(source, start, Kind.STREAM_OVERLAP, Role.STREAM_OVERLAP, work, Evidence.ORDER)


def _launch_edges(work: Event, devices: Devices, points: Points) -> Iterator[Edge]:
    """Let the call come first. One that begins after its work shows skewed clocks: it is given
    as it is, to be found among the violations, and the work hangs on what the thread did before.
    """
    call, start, known = devices.launches.call_of(work), points.start(work), Evidence.CORRELATION
    if call is None:
        return
    call_start, call_end = points.start(call), points.end(call)
    if call.end_ns <= work.start_ns:
        yield Edge(call_end, start, Kind.LAUNCH, Role.LAUNCH, work, known)
    elif call.start_ns <= work.start_ns:
        yield Edge(call_start, start, Kind.RUNTIME, Role.LAUNCH_INSIDE, call, known)
    else:
        yield Edge(call_start, start, Kind.LAUNCH, Role.LAUNCH, work, known)
        before = points.last_of_thread(call.lane, work.start_ns)
        if before is not None:
            yield Edge(before, start, Kind.CLOCK_SKEW, Role.CLOCK, work, known)


def pending_wait_calls(trace: Trace, devices: Devices) -> dict[Event, list[Event]]:
    """For all work, list the wait calls of its thread since that thread's last launch there.

    Calls with a record are left out: for them, nothing needs to be guessed.
    """
    recorded = {
        devices.launches.call(record.correlation, record.start_ns)
        for record in trace.records
        if record.kind == STREAM_WAIT and record.is_known
    }
    pending: dict[Event, list[Event]] = {}
    waits: dict[Lane, list[Event]] = defaultdict(list)
    used: dict[tuple[Lane, Lane], int] = defaultdict(int)
    for call in trace.events:
        if call.event_class is not EventClass.RUNTIME:
            continue
        if WAIT_CALL.search(call.name) and call not in recorded:
            waits[call.lane].append(call)
        works = devices.launches.work_of.get(call, [])
        for work in works:
            pending[work] = waits[call.lane][used[call.lane, work.lane] :]
        for work in works:
            used[call.lane, work.lane] = len(waits[call.lane])
    return pending


def _asked_by_other(trace: Trace, devices: Devices) -> set[Event]:
    """List the work whose process called for a wait since any thread launched on its stream."""
    recorded = {
        devices.launches.call(record.correlation, record.start_ns)
        for record in trace.records
        if record.kind == STREAM_WAIT and record.is_known
    }
    found: set[Event] = set()
    n_waits: dict[object, int] = defaultdict(int)
    n_before: dict[Lane, int] = {}
    for call in trace.events:
        if call.event_class is not EventClass.RUNTIME:
            continue
        process = call.lane.owner
        n_waits[process] += bool(WAIT_CALL.search(call.name)) and call not in recorded
        works = devices.launches.work_of.get(call, [])
        found |= {
            work for work in works if n_before.get(work.lane, n_waits[process]) < n_waits[process]
        }
        n_before |= {work.lane: n_waits[process] for work in works}
    return found


@dataclass(frozen=True)
class _Start:
    """The start of a piece of device work, with all that is known to come before it."""

    work: Event
    edges: list[Edge]
    running: Sequence[Event]
    wait_calls: Sequence[Event]
    is_asked_by_other: bool


def _explained(start: _Start, points: Points, devices: Devices) -> list[Edge]:
    """Add the reason of a start that comes later than its edges say, or name the gap openly."""
    work_ns = start.work.start_ns
    forward = [edge for edge in start.edges if points.time_ns(edge.source) <= work_ns]
    if not start.edges:
        return _any_reason(start, points, devices)
    if not forward:
        return start.edges
    binding = min(forward, key=points.binding_order)
    ready_ns = points.finished_ns(binding)
    reason = _reason(start, ready_ns, points, devices)
    latent = latent_waits(start.work, start.wait_calls, ready_ns, points, devices)
    if reason:
        return [*start.edges, reason, *latent]
    call = devices.launches.call_of(start.work)
    least_ns = limits.UNEXPLAINED_NS if call else limits.LATE_START_NS
    if (
        not start.running
        and work_ns - ready_ns > least_ns
        and binding.role in {Role.STREAM_ORDER, Role.LAUNCH}
    ):
        others = [edge for edge in start.edges if edge is not binding]
        return [*others, _gap_edge(binding, call), *latent]
    return [*start.edges, *latent]


def _any_reason(start: _Start, points: Points, devices: Devices) -> list[Edge]:
    """Find the reason for work to which nothing leads, no call and nothing on its stream."""
    work = start.work
    reason = _release(start, -limits.LARGEST_TIME_NS, points, devices)
    reason = reason or _occupation(work, points, devices)
    if reason:
        return [reason]
    before = [
        other
        for lane in devices.lanes_of(work.lane.owner)
        if lane != work.lane
        for other in devices.streams[lane].works
        if other.end_ns <= work.start_ns
        if devices.launches.earliest_submission_ns(other) < devices.launches.submitted_ns(work)
    ]
    last = latest_to_end(before)
    if last is None:
        return []
    source, target = points.end(last), points.start(work)
    return [Edge(source, target, Kind.UNEXPLAINED, Role.NO_REASON, work, Evidence.NONE)]


def _reason(start: _Start, ready_ns: int, points: Points, devices: Devices) -> Edge | None:
    late_ns = start.work.start_ns - ready_ns
    if start.running:
        if late_ns <= limits.OVERLAP_SOURCE_NS:
            return None
        target = points.start(start.work)
        return inside_edge(start.running[-1], target, Role.OVERLAP_INSIDE, points)
    released = _release(start, ready_ns, points, devices)
    released = released or _lost_launch(start.work, ready_ns, points, devices)
    is_launched = devices.launches.call_of(start.work) is not None
    if released or late_ns <= limits.LATE_START_NS or not is_launched:
        return released
    return _occupation(start.work, points, devices)


def _lost_launch(work: Event, ready_ns: int, points: Points, devices: Devices) -> Edge | None:
    """Let late work without a launcher follow the thread that launched the work before it.

    Where that did nothing meanwhile, it is another thread that launches on the device.
    """
    launches = devices.launches
    if launches.call_of(work) or work.start_ns - ready_ns <= limits.LATE_AFTER_LOST_NS:
        return None
    works = [other for other in devices.streams[work.lane].works if other.rank < work.rank]
    calls = [launches.call_of(other) for other in works[-MOST_UNLINKED:]]
    call = next((call for call in reversed(calls) if call), None)
    launched_ns = work.start_ns - limits.USUAL_LAUNCH_NS
    if call is None or launches.submitted_ns(work) < launched_ns:
        return None
    for threads in ({call.lane}, devices.launching_threads(work.lane.owner)):
        last = (points.last_of_thread(thread, launched_ns) for thread in threads)
        found = [point for point in last if point is not None and points.time_ns(point) > ready_ns]
        if found:
            target = points.start(work)
            return Edge(max(found), target, Kind.LAUNCH, Role.LAUNCH, work, Evidence.INFERRED)
    return None


def _release(start: _Start, ready_ns: int, points: Points, devices: Devices) -> Edge | None:
    """Find the work of another stream whose end, just before, lets this one start."""
    work, launches = start.work, devices.launches
    late_ns = work.start_ns - ready_ns
    least = _least_mark(start, late_ns, devices)
    if least is None:
        return None
    reach_ns = (
        limits.WAIT_RELEASE_AFTER_WAIT_CALL_NS if start.wait_calls else limits.WAIT_RELEASE_NS
    )
    after_ns = max(ready_ns, work.start_ns - reach_ns - 1)
    is_asked = bool(start.wait_calls)
    lanes_of = devices.lanes_of_process if is_asked else devices.lanes_of
    paired = [
        other
        for other in (devices.paired.get(work, []) if devices.has_siblings else [])
        if other.lane != work.lane and after_ns < other.end_ns <= work.start_ns
    ]
    producers = [
        other
        for lane in lanes_of(work.lane.owner)
        if lane != work.lane
        for other in devices.ended_between(lane, after_ns, work.start_ns)
        if launches.earliest_submission_ns(other) < launches.submitted_ns(work)
        if devices.marks.of(other) >= least
    ]

    def is_believable(other: Event) -> bool:
        is_too_soon = work.start_ns - other.end_ns < limits.QUICKEST_RELEASE_NS
        return not is_too_soon or not start.edges

    def likelihood(other: Event) -> tuple[bool, bool, int, bool, int, int]:
        as_usual = work.start_ns - other.end_ns <= limits.WAIT_RELEASE_NS
        before = (is_believable(other), as_usual)
        if other in paired:
            return (*before, MOST_LIKELY, True, other.end_ns, -other.rank)
        is_own = other.lane.owner == work.lane.owner
        return (*before, devices.marks.of(other), is_own, other.end_ns, -other.rank)

    needs_reason = late_ns > limits.LATE_START_AFTER_WAIT_CALL_NS or devices.has_siblings
    candidates = [it for it in [*paired, *producers] if needs_reason or is_believable(it)]
    producer = max(candidates, key=likelihood, default=None)
    if producer is None:
        return None
    source, target = points.end(producer), points.start(work)
    return Edge(source, target, Kind.EVENT_WAIT, Role.EVENT_WAIT, work, Evidence.INFERRED)


def _least_mark(start: _Start, late_ns: int, devices: Devices) -> Mark | None:
    """Say what mark work must have to be believed: the later the start, the less it takes."""
    call = devices.launches.call_of(start.work)
    is_late = late_ns > limits.LATE_START_NS
    if not start.wait_calls:
        if is_late and start.is_asked_by_other:
            return Mark.POSSIBLE
        may_wait = is_late and _may_wait_without_call(start.work, devices)
        return Mark.UNMARKED if may_wait else None
    is_just_asked = call is not None and is_asked_just_now(call, start.wait_calls, devices)
    if is_late:
        return Mark.UNMARKED
    if late_ns > limits.LATE_START_AFTER_WAIT_CALL_NS:
        if is_just_asked or not devices.marks.has_records:
            return Mark.POSSIBLE
        return Mark.LIKELY if devices.has_siblings and start.work in devices.paired else None
    return Mark.LIKELY if is_just_asked else None


def _may_wait_without_call(work: Event, devices: Devices) -> bool:
    """Say whether no wait call is to be expected: none is in the trace, or none could be seen."""
    call = devices.launches.call_of(work)
    return not devices.has_wait_calls or call is None or bool(GRAPH_LAUNCH.search(call.name))


def _occupation(work: Event, points: Points, devices: Devices) -> Edge | None:
    """Find the kernel of another stream that holds the device while this kernel should start."""
    if kind_of_work(work) is Kind.COPY:
        return None
    holders = [
        other
        for lane in devices.lanes_of(work.lane.owner)
        if lane != work.lane
        for other in devices.streams[lane].works
        if other.start_ns < work.start_ns < other.end_ns and kind_of_work(other) is not Kind.COPY
    ]
    holder = max(holders, key=lambda other: (other.start_ns, -other.rank), default=None)
    if holder is None:
        return None
    return inside_edge(holder, points.start(work), Role.DEVICE_OCCUPIED, points)


def latest_to_end(works: Iterable[Event]) -> Event | None:
    """Choose the work that ends last; of several the first in content order."""
    return max(works, key=lambda work: (work.end_ns, -work.rank), default=None)


def _gap_edge(binding: Edge, call: Event | None) -> Edge:
    in_graph = call is not None and GRAPH_LAUNCH.search(call.name)
    kind = Kind.GRAPH_GAP if in_graph else Kind.UNEXPLAINED
    return replace(binding, kind=kind, role=Role.NO_REASON, evidence=Evidence.NONE)
