"""Trace events in plain Python: bytes in, events and the rows that are none out."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

GZIP_MAGIC = b"\x1f\x8b"

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
    "Memset": "fill",
    "gpu_user_annotation": "device_annotation",
    "cuda_sync": "synchronization",
    "cuda_profiler_range": "counter_range",
    "overhead": "overhead",
    "Trace": "span",
}
OLD_ANNOTATION = re.compile(r"ProfilerStep#|enumerate\(DataLoader\)#|Optimizer\.")
"""Until torch 1.9, annotations have the category of operators."""
OUTSIDE_IN = ["annotation", "operator", "python", "runtime", "driver", "other"]
CLASS_OF_KIND = {"kernel": "compute", "copy": "copy", "fill": "copy"}
ON_DEVICE = {*CLASS_OF_KIND, "device_annotation", "synchronization"}
COMMUNICATION = re.compile(
    r"[nrhm]ccl|msccl|oneccl|ccl::|flagcx|(?:nv|roc|i)shmem|userbuffers|multimem_"
    r"|cross_device_reduce|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|all2all|sendrecv"
    r"|symmetric_memory|symm_mem|_on_stream_kernel|lamport|a2a_?(?:dispatch|combine)"
    r"|(?:intra|inter)node(?:_ll)?(?:::|\d)(?:dispatch|combine|notify|cached_notify|barrier)",
    re.IGNORECASE,
)


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
    def work_class(self) -> str | None:
        is_recorded = bool(self.args.get("Collective name"))
        if self.kind == "kernel" and (is_recorded or COMMUNICATION.search(self.name or "")):
            return "communication"
        return CLASS_OF_KIND.get(self.kind)

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


def nanoseconds(microseconds: Decimal | float | str) -> int:
    """Convert exactly; what is finer than a nanosecond rounds half to even."""
    return int((Decimal(str(microseconds)) * 1000).to_integral_value(ROUND_HALF_EVEN))


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
    if raw.get("cat") == "Operator" and OLD_ANNOTATION.match(raw.get("name") or ""):
        return "annotation"
    if raw.get("cat") == "mtia_ccp_events":
        name = raw.get("name") or ""
        if name.startswith("event_wait") and "wait_on_stream" in raw.get("args", {}):
            return "synchronization"
        return "copy" if name.startswith("dma_request") else "kernel"
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


def spelled_like(value: Any, kept: Any) -> Any:
    """Give a value of the file in the type of the column that keeps it."""
    if isinstance(kept, str) and isinstance(value, list | dict):
        return kept if json.loads(kept, parse_float=Decimal) == value else value
    return type(kept)(value)
