"""What a trace says, found in the plainest way: the other side of the tests of reading.

Everything is done with `json` and `Decimal`, lists and dictionaries, in the words of the
contract and with no regard for speed. Sound traces only: what a damaged one gives is
tested elsewhere.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

GZIP_MAGIC = b"\x1f\x8b"
NESTING_TOLERANCE_NS = 1_000
COMMUNICATION = re.compile(
    "nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|sendrecv", re.IGNORECASE
)
STEP = re.compile(r"ProfilerStep\s*#\s*(\d+)")

KIND_OF_CATEGORY = {
    "cpu_op": "operator",
    "Operator": "operator",
    "python_function": "python",
    "cuda_runtime": "runtime",
    "Runtime": "runtime",
    "cuda_driver": "driver",
    "user_annotation": "annotation",
    "kernel": "kernel",
    "Kernel": "kernel",
    "gpu_memcpy": "copy",
    "Memcpy": "copy",
    "gpu_memset": "fill",
    "gpu_user_annotation": "device_annotation",
    "cuda_sync": "synchronization",
    "cuda_profiler_range": "counter_range",
    "overhead": "overhead",
    "Trace": "span",
}
OUTSIDE_IN = ["annotation", "operator", "python", "runtime", "driver", "other"]
CLASS_OF_KIND = {"kernel": "compute", "copy": "copy", "fill": "copy"}
ON_DEVICE = {*CLASS_OF_KIND, "device_annotation", "synchronization"}


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """One thing with a place in time."""

    row: int
    position: int
    kind: str
    category: str | None
    name: str | None
    process: str
    thread: str
    device: int | None
    stream: int | None
    start_ns: int
    duration_ns: int | None
    correlation: int | None
    external_id: int | None
    args: dict[str, Any]

    @property
    def end_ns(self) -> int | None:
        if self.duration_ns is None or self.duration_ns < 0:
            return None
        return self.start_ns + self.duration_ns

    @property
    def lane(self) -> tuple[str, str]:
        return (self.process, self.thread)

    @property
    def is_work(self) -> bool:
        return self.kind in CLASS_OF_KIND

    @property
    def is_call(self) -> bool:
        return self.kind in {"runtime", "driver"}

    @property
    def nests(self) -> bool:
        return self.kind in OUTSIDE_IN and self.end_ns is not None


@dataclass
class Trace:
    """The tables of one trace; rows that are not events are dictionaries."""

    header: dict[str, Any]
    events: list[Event] = field(default_factory=list)
    flows: list[dict[str, Any]] = field(default_factory=list)
    asynchronous: list[dict[str, Any]] = field(default_factory=list)
    counters: list[dict[str, Any]] = field(default_factory=list)
    statements: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    phases: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Launch:
    """A piece of work on a device, and what launched it."""

    event: int
    call: int | None
    operator: int | None
    linked_by: str | None
    delay_ns: int | None


# Reading.


def read(data: bytes) -> Trace:
    """Read a sound trace, plain or gzip, in object or array form."""
    text = gzip.decompress(data) if data.startswith(GZIP_MAGIC) else data
    document = json.loads(text, parse_float=Decimal)
    elements = document if isinstance(document, list) else document["traceEvents"]
    members = {} if isinstance(document, list) else json.loads(text)
    trace = Trace({key: value for key, value in members.items() if key != "traceEvents"})
    ends = []
    for position, raw in enumerate(elements):
        if raw:
            trace.phases[raw.get("ph", "")] += 1
            _add(trace, ends, position, raw)
    _pair(trace, ends)
    return trace


def nanoseconds(microseconds: str | Decimal) -> int:
    """Convert exactly; what is finer than a nanosecond rounds half to even."""
    return int((Decimal(microseconds) * 1000).to_integral_value(ROUND_HALF_EVEN))


def _add(trace: Trace, ends: list[Event], position: int, raw: dict[str, Any]) -> None:
    match raw.get("ph"):
        case "M":
            value = next(iter(raw.get("args", {}).values()), None)
            trace.statements[raw.get("name"), *_track(raw), _text(value)] += 1
        case "s" | "t" | "f":
            trace.flows.append({"flow": _integer(raw.get("id")), **_point(position, raw)})
        case "b" | "n" | "e":
            trace.asynchronous.append({"id": _integer(raw.get("id")), **_point(position, raw)})
        case "C":
            trace.counters.extend(_samples(position, raw))
        case "E":
            ends.append(_event(-1, position, raw))
        case _:
            trace.events.append(_event(len(trace.events), position, raw))


def _event(row: int, position: int, raw: dict[str, Any]) -> Event:
    process, thread = _track(raw)
    kind, args = _kind(raw), raw.get("args", {})
    on_device = kind in ON_DEVICE
    duration_ns = nanoseconds(raw["dur"]) if raw.get("ph") == "X" and "dur" in raw else None
    return Event(
        row=row,
        position=position,
        kind=kind,
        category=raw.get("cat"),
        name=raw.get("name"),
        process=process,
        thread=thread,
        device=_integer(args.get("device", raw.get("pid"))) if on_device else None,
        stream=_integer(args.get("stream", raw.get("tid"))) if on_device else None,
        start_ns=nanoseconds(raw["ts"]),
        duration_ns=duration_ns,
        correlation=_integer(args.get("correlation")),
        external_id=_integer(args.get("External id", args.get("external id"))),
        args=args,
    )


def _kind(raw: dict[str, Any]) -> str:
    if raw.get("ph") in {"i", "I", "R"}:
        return "instant"
    return KIND_OF_CATEGORY.get(raw.get("cat"), "other")


def _track(raw: dict[str, Any]) -> tuple[str, str]:
    return str(raw.get("pid", "")), str(raw.get("tid", ""))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _integer(value: Any) -> int | None:
    """Take an integer, or the text of one."""
    try:
        number = int(value, 16 if value.startswith("0x") else 10)
    except ValueError:
        return None
    except AttributeError:
        number = value if isinstance(value, int) else None
    return number if number is not None and -(2**63) < number < 2**63 else None


def _point(position: int, raw: dict[str, Any]) -> dict[str, Any]:
    process, thread = _track(raw)
    return {
        "phase": raw["ph"],
        "category": raw.get("cat"),
        "name": raw.get("name"),
        "process": process,
        "thread": thread,
        "time_ns": nanoseconds(raw["ts"]),
        "position": position,
    }


def _samples(position: int, raw: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for series, value in raw.get("args", {}).items():
        yield {
            "name": raw.get("name"),
            "series": series,
            "process": _track(raw)[0],
            "time_ns": nanoseconds(raw["ts"]),
            "value": float(value),
            "position": position,
        }


def _pair(trace: Trace, ends: list[Event]) -> None:
    """Close begin events: an end closes the last one on its lane that is open."""
    begins = [
        event for event in trace.events if event.duration_ns is None and event.kind in OUTSIDE_IN
    ]
    open_on: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in sorted([*begins, *ends], key=lambda event: (event.start_ns, event.position)):
        if event.row >= 0:
            open_on[event.lane].append(event)
        elif open_on[event.lane]:
            begin = open_on[event.lane].pop()
            duration_ns = event.start_ns - begin.start_ns
            trace.events[begin.row] = replace(begin, duration_ns=duration_ns)


# Nesting.


def outside_in(event: Event) -> tuple[Any, ...]:
    """Order events by start, the longer and outer kind first; then by any difference."""
    ids = [event.external_id, event.correlation, event.name]
    known = [(value is not None, value) for value in ids]
    kind = OUTSIDE_IN.index(event.kind)
    return (event.start_ns, -(event.duration_ns or 0), kind, *known, event.lane, event.row)


def parents(trace: Trace) -> dict[int, int | None]:
    """Give each event on a thread the last to start of those that enclose it."""
    found: dict[int, int | None] = {}
    for events in _by_lane(event for event in trace.events if event.nests).values():
        running: list[Event] = []
        for event in sorted(events, key=outside_in):
            running = [other for other in running if other.end_ns >= event.start_ns]
            around = [other for other in reversed(running) if encloses(other, event)]
            found[event.row] = around[0].row if around else None
            running.append(event)
    return found


def encloses(outer: Event, inner: Event) -> bool:
    """Say whether an event lies in one that stands before it, give or take a rounding."""
    left_ns = outer.end_ns - inner.start_ns
    beyond_ns = inner.end_ns - outer.end_ns
    if beyond_ns > 0:
        return beyond_ns <= min(NESTING_TOLERANCE_NS, left_ns)
    return left_ns > 0 or inner.duration_ns == 0


def depths(parent_of: dict[int, int | None]) -> dict[int, int]:
    """Count the events around each."""

    def depth(row: int) -> int:
        count = 0
        while (row := parent_of[row]) is not None:
            count += 1
        return count

    return {row: depth(row) for row in parent_of}


def own_times(trace: Trace) -> dict[int, int]:
    """Give every instant of a thread to the event running then that started last."""
    own = {event.row: 0 for event in trace.events if event.nests}
    for events in _by_lane(event for event in trace.events if event.nests).values():
        ordered = sorted(filter(lambda event: event.duration_ns, events), key=outside_in)
        starts = [(event.start_ns, place, True) for place, event in enumerate(ordered)]
        ends = [(event.end_ns, place, False) for place, event in enumerate(ordered)]
        running: set[int] = set()
        since = 0
        for time_ns, place, starts_here in sorted(starts + ends):
            if running:
                own[ordered[max(running)].row] += time_ns - since
            (running.add if starts_here else running.discard)(place)
            since = time_ns
    return own


def _by_lane(events: Iterable[Event]) -> dict[tuple[str, str], list[Event]]:
    lanes = defaultdict(list)
    for event in events:
        lanes[event.lane].append(event)
    return lanes


# Links.


def launches(trace: Trace) -> list[Launch]:
    """Join each piece of work on a device to its call, and to the operator around that."""
    parent_of = parents(trace)
    call_of = calls(trace)
    operators = _operators_by_external_id(trace)
    found = []
    for work in filter(lambda event: event.is_work, trace.events):
        call = call_of[work.row]
        if call:
            operator = _operator_around(call.row, parent_of, trace)
            delay_ns = None if call.end_ns is None else work.start_ns - call.end_ns
            found.append(Launch(work.row, call.row, operator, "correlation", delay_ns))
        else:
            operator = operators.get(work.external_id)
            linked_by = None if operator is None else "external_id"
            found.append(Launch(work.row, None, operator, linked_by, None))
    return found


def calls(trace: Trace) -> dict[int, Event | None]:
    """Find the call with the correlation of each piece of work; 0 is no correlation."""
    numbered = defaultdict(list)
    for event in trace.events:
        if event.is_call and event.correlation:
            numbered[event.correlation].append(event)
    works = [event for event in trace.events if event.is_work]
    homes = defaultdict(set)
    for work in works:
        if len(numbered[work.correlation]) == 1:
            homes[work.process, work.device].add(numbered[work.correlation][0].process)

    def choose(work: Event) -> Event | None:
        home = homes[work.process, work.device]

        def preference(call: Event) -> tuple[bool, bool]:
            same_id = work.external_id is not None and call.external_id == work.external_id
            return (home == {call.process}, same_id)

        best = max(map(preference, numbered[work.correlation]), default=None)
        candidates = [call for call in numbered[work.correlation] if preference(call) == best]
        candidates.sort(key=outside_in)
        earlier = [call for call in candidates if call.start_ns <= work.start_ns]
        return next(iter(earlier[::-1] or candidates), None)

    return {work.row: choose(work) for work in works}


def _operators_by_external_id(trace: Trace) -> dict[int | None, int]:
    """List the External ids that name one operator, and which."""
    named = defaultdict(list)
    for event in trace.events:
        if event.kind == "operator" and event.external_id:
            named[event.external_id].append(event.row)
    return {number: rows[0] for number, rows in named.items() if len(rows) == 1}


def _operator_around(row: int, parent_of: dict[int, int | None], trace: Trace) -> int | None:
    row = parent_of.get(row)
    while row is not None and trace.events[row].kind != "operator":
        row = parent_of[row]
    return row


# Steps, and what devices did.


def steps(trace: Trace) -> list[dict[str, Any]]:
    """List the steps with the windows in which their work was done, by time."""
    annotations = [
        (event.start_ns, int(number[1]), event)
        for event in trace.events
        if event.kind == "annotation"
        and event.end_ns is not None
        and (number := STEP.fullmatch(event.name or ""))
    ]
    annotations.sort(key=lambda step: (*step[:2], step[2].end_ns, step[2].row))
    call_of = calls(trace)

    def completion_ns(step: Event) -> int:
        launched = [
            trace.events[row].end_ns
            for row, call in call_of.items()
            if call
            and call.process == step.process
            and step.start_ns <= call.start_ns < step.end_ns
            and trace.events[row].end_ns is not None
        ]
        return max([step.end_ns, *launched])

    complete_ns = {event.row: completion_ns(event) for _, _, event in annotations}
    rows = []
    for start_ns, number, event in annotations:
        befores = (
            complete_ns[other.row]
            for _, other_number, other in annotations
            if other_number == number - 1 and other.process == event.process
        )
        end_ns = complete_ns[event.row]
        rows.append(
            {
                "step": number,
                "name": event.name,
                "start_ns": start_ns,
                "duration_ns": event.duration_ns,
                "event": event.row,
                "window_start_ns": min(next(befores, start_ns), end_ns),
                "window_end_ns": end_ns,
            }
        )
    return rows


def whole_window(trace: Trace) -> tuple[int, int] | None:
    """Cover all that has a duration on threads and devices, and a time."""
    events = [
        event
        for event in trace.events
        if event.end_ns is not None
        and (event.kind in OUTSIDE_IN or (event.is_work and event.start_ns != 0))
    ]
    if not events:
        return None
    return min(event.start_ns for event in events), max(event.end_ns for event in events)


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
            (max(event.start_ns, start_ns), min(event.end_ns, end_ns), work_class(event))
            for event in here
            if max(event.start_ns, start_ns) < min(event.end_ns, end_ns)
        ]
        rows.append({"device": device, "stream": stream, **_split(spans, end_ns - start_ns)})
    return rows


def work_class(event: Event) -> str:
    """Say what a piece of work is for."""
    if event.kind == "kernel" and COMMUNICATION.search(event.name or ""):
        return "communication"
    return CLASS_OF_KIND[event.kind]


def gaps(trace: Trace, start_ns: int, end_ns: int) -> list[dict[str, Any]]:
    """List when a device did nothing in a window, and what work and which call ended that."""
    call_of = calls(trace)
    works = [event for event in trace.events if event.is_work and event.end_ns is not None]
    rows = []
    for device in sorted(
        {event.device for event in works}, key=lambda device: _nulls_first([device])
    ):
        here = [event for event in works if event.device == device]
        for gap_start_ns, gap_end_ns in _idle(here, start_ns, end_ns):
            behind = [event for event in here if event.start_ns == gap_end_ns < end_ns]
            following = min(behind, key=_shortest, default=None)
            call = call_of[following.row] if following else None
            rows.append(
                {
                    "device": device,
                    "start_ns": gap_start_ns,
                    "duration_ns": gap_end_ns - gap_start_ns,
                    "next": following.row if following else None,
                    "call": call.row if call else None,
                    "host_ns": _part_before(call, gap_start_ns, gap_end_ns),
                }
            )
    return rows


def _split(spans: list[tuple[int, int, str]], length_ns: int) -> dict[str, int]:
    time_ns = _time_by_classes(spans)

    def where(test: Any) -> int:
        return sum(ns for classes, ns in time_ns.items() if test(classes))

    busy_ns = where(bool)
    return {
        "n_events": len(spans),
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


def _shortest(event: Event) -> tuple[Any, ...]:
    """Order work that begins together: the shortest first, then by any difference."""
    return (event.end_ns, *_nulls_first([event.stream, event.name, event.correlation]), event.row)


def _idle(works: list[Event], start_ns: int, end_ns: int) -> Iterator[tuple[int, int]]:
    """Walk through the work by start; between the end of all before and the next is a gap."""
    done_ns = start_ns
    for event in sorted(works, key=lambda event: event.start_ns):
        if event.duration_ns and event.end_ns > start_ns:
            if done_ns < min(event.start_ns, end_ns):
                yield done_ns, min(event.start_ns, end_ns)
            done_ns = max(done_ns, event.end_ns)
    if done_ns < end_ns:
        yield done_ns, end_ns


def _part_before(call: Event | None, start_ns: int, end_ns: int) -> int | None:
    if call is None or call.end_ns is None:
        return None
    return max(0, min(call.end_ns, end_ns) - start_ns)


def _nulls_first(values: Iterable[Any]) -> list[tuple[bool, Any]]:
    return [(value is not None, value or 0) for value in values]


# Arguments.


def spelled_like(value: Any, kept: Any) -> Any:
    """Give a value of the file in the type of the column that keeps it."""
    if isinstance(kept, str) and isinstance(value, list | dict):
        return kept if json.loads(kept, parse_float=Decimal) == value else value
    return type(kept)(value)
