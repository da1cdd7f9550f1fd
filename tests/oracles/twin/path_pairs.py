"""What a wait call is likely to wait for: work behind which its thread recorded an event last."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .path_edges import Edge, Evidence, Kind, Role
from .path_events import Event, EventClass, Lane, Trace
from .path_hints import RECORD_CALL, WAIT_CALL, Mark
from .path_streams import finish_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .path_devices import Devices
    from .path_edges import Points

MOST_WAITS = 64
"""Of so many wait calls before a launch the latest are looked at."""


@dataclass
class _Thread:
    """What a thread did so far: its records since a launch, its waits, its launches."""

    lanes: list[Lane] = field(default_factory=list)
    n_records: int = 0
    recorded: Event | None = None
    waits: list[Event | None] = field(default_factory=list)
    n_launched: int = 0
    n_seen: dict[Lane, int] = field(default_factory=dict)


def paired_work(trace: Trace, devices: Devices) -> dict[Event, list[Event]]:
    """Give, for work before which its thread let a stream wait, the likely work waited for."""
    paired: dict[Event, list[Event]] = {}
    if not devices.has_wait_calls:
        return paired
    threads: dict[Lane, _Thread] = defaultdict(_Thread)
    for call in trace.events:
        if call.event_class is not EventClass.RUNTIME:
            continue
        thread = threads[call.lane]
        if RECORD_CALL.search(call.name):
            _record(thread, call, devices)
        elif WAIT_CALL.search(call.name):
            thread.waits.append(thread.recorded)
        else:
            _launch(thread, devices.launches.work_of.get(call, []), paired)
    return paired


def _record(thread: _Thread, call: Event, devices: Devices) -> None:
    lanes = thread.lanes[thread.n_records : thread.n_records + 1]
    found = [devices.streams[lane].last_submitted_before(call.start_ns) for lane in lanes]
    thread.recorded = next(iter(found), None)
    thread.n_records += 1


def _launch(thread: _Thread, works: list[Event], paired: dict[Event, list[Event]]) -> None:
    if not works:
        return
    n_waits = len(thread.waits)
    for work in works:
        is_asked_just_now = thread.n_launched < n_waits
        first = thread.n_launched if is_asked_just_now else thread.n_seen.get(work.lane, 0)
        waits = thread.waits[max(first, n_waits - MOST_WAITS) :]
        found = [other for other in waits if other]
        if found:
            paired[work] = found
    for work in works:
        thread.n_seen[work.lane] = n_waits
    thread.n_launched, thread.n_records = n_waits, 0
    lane = works[0].lane
    thread.lanes = [lane, *(other for other in thread.lanes if other != lane)]


def is_asked_just_now(call: Event, wait_calls: Sequence[Event], devices: Devices) -> bool:
    """Say whether a thread let a stream wait after its last launch before a call."""
    return bool(wait_calls) and wait_calls[-1].rank > devices.recent.last_launch(call)


def latent_waits(
    work: Event, wait_calls: Sequence[Event], ready_ns: int, points: Points, devices: Devices
) -> Iterator[Edge]:
    """Give waits for what was over before anything else that work needed was."""
    call, target = devices.launches.call_of(work), points.start(work)
    paired = devices.paired.get(work, [])
    producers = _last_of_lanes(paired) if wait_calls else []
    if call and not paired and is_asked_just_now(call, wait_calls, devices):
        lanes = devices.lanes_of(work.lane.owner)
        last = [devices.streams[lane].last_submitted_before(call.start_ns) for lane in lanes]
        producers = [it for it in last if it and devices.marks.of(it) is Mark.LIKELY]
    for other in producers:
        if other.lane != work.lane and other.end_ns < ready_ns:
            source = points.end(other)
            yield Edge(source, target, Kind.EVENT_WAIT, Role.EVENT_WAIT, work, Evidence.INFERRED)


def _last_of_lanes(works: list[Event]) -> list[Event]:
    """Give the work of each stream that ended last."""
    lanes = dict.fromkeys(work.lane for work in works)
    of_lane = ([work for work in works if work.lane == lane] for lane in lanes)
    return [max(its, key=finish_order) for its in of_lane]
