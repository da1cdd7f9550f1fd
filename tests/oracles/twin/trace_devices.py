"""Steps and their windows, and what devices did in a window."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from .call_order import ALWAYS, CallOrder, Numbered
from .path_limits import LARGEST_TIME_NS, LATE_AFTER_LOST_NS
from .trace_links import calls
from .trace_nesting import outside_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .trace_events import Event, Trace

WORK_OF_THREADS = ("operator", "python", "runtime", "driver")
STEP = re.compile(r"ProfilerStep\s*#\s*(\d+)")


def steps(trace: Trace) -> list[dict[str, Any]]:
    """List the steps with the windows in which their work was done, by time."""
    annotations = _annotations(trace)
    submitted = _submitted(trace)
    complete_ns = {event.row: _completion_ns(event, submitted) for _, event in annotations}
    rows = []
    for number, event in annotations:
        befores = [
            other
            for other_number, other in annotations
            if other_number == number - 1 and other.process == event.process
        ]
        before = min(befores, key=outside_in, default=None)
        window_start_ns = complete_ns[before.row] if before else event.start_ns
        rows.append(
            {
                "step": number,
                "name": event.name,
                "start_ns": event.start_ns,
                "duration_ns": event.duration_ns,
                "event": event.row,
                "window_start_ns": window_start_ns,
                "window_end_ns": max(complete_ns[event.row], window_start_ns),
            }
        )
    return rows


def _annotations(trace: Trace) -> list[tuple[int, Event]]:
    """List the annotations of steps with their numbers, by time."""
    numbered = [
        (int(number[1]), event)
        for event in trace.events
        if event.kind == "annotation"
        and event.end_ns is not None
        and (number := STEP.fullmatch(event.name or ""))
    ]
    return sorted(numbered, key=lambda it: (it[1].start_ns, it[0], it[1].end_ns, it[1].row))


def _completion_ns(step: Event, submitted: dict[Event, tuple[int, str]]) -> int:
    """Say when a step and all work of devices that was launched in it are over."""
    launched = [
        work.end_ns
        for work, (at_ns, process) in submitted.items()
        if process == step.process and step.start_ns <= at_ns < step.end_ns
    ]
    return max([step.end_ns, *launched])


def _submitted(trace: Trace) -> dict[Event, tuple[int, str]]:
    """Say when the work of devices was launched, or is likely to have been, and by which process.

    Work without a launch was launched with the work before it on its stream, if it followed that at
    once, else just before it began, before what was launched after it, and between the calls with
    the numbers around its own. Without launched work on its stream, nothing tells.
    """
    call_of = calls(trace)
    order = CallOrder(
        Numbered(call.correlation, call.start_ns, call.end_ns, call.process, call.lane)
        for call in trace.events
        if call.is_call and call.end_ns is not None and call.correlation and call.correlation > 0
    )
    streams = defaultdict(list)
    for event in trace.events:
        if event.is_work and event.end_ns is not None:
            streams[(*event.lane, event.device, event.stream)].append(event)
    found = {}
    for works in streams.values():
        works.sort(key=outside_in)
        called = [
            (call.start_ns, call.process) if (call := call_of[w.row]) else None for w in works
        ]
        process = next((call[1] for call in called if call), None)
        last_ns = None
        for place, work in enumerate(works):
            call = called[place]
            if call:
                found[work] = call
                last_ns, process = call
            elif process is not None:
                numbered_ns = order.around(process, work.correlation)
                ended_ns = max((it.end_ns for it in works[:place]), default=-LARGEST_TIME_NS)
                follows = last_ns is not None and work.start_ns - ended_ns <= LATE_AFTER_LOST_NS
                at_ns = last_ns if follows else max(work.start_ns, last_ns or work.start_ns)
                at_ns = min(max(at_ns, numbered_ns[0]), numbered_ns[1])
                behind_ns = next(filter(None, called[place:]), (LARGEST_TIME_NS, None))[0]
                if last_ns is not None or numbered_ns != ALWAYS:
                    found[work] = min(at_ns, behind_ns), process
                    last_ns = at_ns
    return found


def whole_window(trace: Trace) -> tuple[int, int] | None:
    """Cover the work of main threads and devices: other threads never end a trace."""
    leading = _main_threads(trace)
    works = [
        event
        for event in trace.events
        if event.end_ns is not None
        and (event.start_ns, event.duration_ns) != (0, 0)
        and (event.is_work or (event.kind in WORK_OF_THREADS and event.lane in leading))
    ]
    if not works:
        return None
    return min(event.start_ns for event in works), max(event.end_ns for event in works)


def _main_threads(trace: Trace) -> set[tuple[str, str]]:
    """Find for each process the thread that runs the steps, or is the first, or the busiest."""
    events: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in sorted(trace.events, key=lambda event: event.start_ns):
        if event.end_ns is not None and event.kind in {*WORK_OF_THREADS, "annotation"}:
            events[event.lane].append(event)
    best: dict[str, tuple[tuple[bool, bool, int], tuple[str, str]]] = {}
    for (process, thread), its in events.items():
        claim = (
            any((event.name or "").startswith("ProfilerStep#") for event in its),
            process == thread and any(event.kind != "annotation" for event in its),
            sum(event.kind in {"operator", "runtime", "driver"} for event in its),
        )
        if process not in best or claim > best[process][0]:
            best[process] = (claim, (process, thread))
    return {thread for _, thread in best.values()}


def busy(trace: Trace, start_ns: int, end_ns: int) -> list[dict[str, Any]]:
    """Split a window, for each device and each of its streams, by what ran."""
    works = [event for event in trace.events if event.is_work and event.end_ns is not None]
    devices = {(event.device, False, None) for event in works}
    streams = {(event.device, True, event.stream) for event in works}
    rows = []
    for device, is_stream, stream in sorted(devices | streams, key=_nulls_first):
        here = [
            event
            for event in works
            if event.device == device and (event.stream == stream or not is_stream)
        ]
        spans = [
            (max(event.start_ns, start_ns), min(event.end_ns, end_ns), event.work_class)
            for event in here
            if max(event.start_ns, start_ns) < min(event.end_ns, end_ns)
            or start_ns <= event.start_ns == event.end_ns <= end_ns
        ]
        rows.append({"device": device, "stream": stream, **_split(spans, end_ns - start_ns)})
    return rows


def gaps(trace: Trace, start_ns: int, end_ns: int) -> list[dict[str, Any]]:
    """List when a device did nothing in a window, and what work and which call ended that."""
    call_of = calls(trace)
    works_of = defaultdict(list)
    for event in trace.events:
        if event.is_work and event.end_ns is not None:
            works_of[event.device].append(event)
    return [
        {"device": device, **_gap(*idle, call_of)}
        for device, works in sorted(works_of.items(), key=lambda item: _nulls_first(item[:1]))
        for idle in _idle(works, start_ns, end_ns)
    ]


def _gap(
    start_ns: int, end_ns: int, ended_by: Event | None, call_of: dict[int, Event | None]
) -> dict[str, Any]:
    call = call_of[ended_by.row] if ended_by else None
    returned_ns = call.end_ns if call else None
    return {
        "start_ns": start_ns,
        "duration_ns": end_ns - start_ns,
        "next": ended_by.row if ended_by else None,
        "call": call.row if call else None,
        "host_ns": None if returned_ns is None else max(0, min(returned_ns, end_ns) - start_ns),
    }


def _idle(
    works: list[Event], start_ns: int, end_ns: int
) -> Iterator[tuple[int, int, Event | None]]:
    """Walk through the work by start: from the end of all before to the next is a gap."""
    done_ns = start_ns
    for event in sorted(works, key=_by_start):
        if event.duration_ns and event.start_ns < end_ns:
            if done_ns < event.start_ns:
                yield done_ns, event.start_ns, event
            done_ns = max(done_ns, event.end_ns)
    if done_ns < end_ns:
        yield done_ns, end_ns, None


def _by_start(event: Event) -> tuple[Any, ...]:
    """Order work; of what begins together the shortest first, then by any difference."""
    known = _nulls_first([event.stream, event.name, event.correlation])
    return (event.start_ns, event.end_ns, *known, event.row)


def _split(spans: list[tuple[int, int, str]], length_ns: int) -> dict[str, int]:
    time_ns = _time_by_classes(spans)

    def where(test: Any) -> int:
        return sum(ns for classes, ns in time_ns.items() if test(classes))

    busy_ns = where(bool)
    return {
        "count": len(spans),
        "busy_ns": busy_ns,
        "compute_ns": where(lambda classes: "compute" in classes),
        "communication_ns": where(lambda classes: classes - {"copy"} == {"communication"}),
        "copy_ns": where(lambda classes: classes == {"copy"}),
        "idle_ns": length_ns - busy_ns,
        "communication_total_ns": where(lambda classes: "communication" in classes),
        "copy_total_ns": where(lambda classes: "copy" in classes),
    }


def _time_by_classes(spans: list[tuple[int, int, str]]) -> Counter[frozenset[str]]:
    """Measure how long each combination of classes ran at once."""
    changes = [(start_ns, 1, name) for start_ns, _, name in spans]
    changes += [(end_ns, -1, name) for _, end_ns, name in spans]
    time_ns: Counter[frozenset[str]] = Counter()
    running: Counter[str] = Counter()
    since = 0
    for now, change, name in sorted(changes):
        time_ns[frozenset(+running)] += now - since
        running[name] += change
        since = now
    return time_ns


def _nulls_first(values: Iterable[Any]) -> list[tuple[bool, Any]]:
    return [(value is not None, value or 0) for value in values]
