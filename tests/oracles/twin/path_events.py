"""Trace events as the critical path sees them: typed, in exact nanoseconds, in content order.

What is not work (overheads, device annotations, whole-trace spans) is left out; what cannot be
placed in time is dropped and counted. Synchronisation records become evidence, never events.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from .trace_events import GZIP_MAGIC, OLD_ANNOTATION, nanoseconds

if TYPE_CHECKING:
    from pathlib import Path

RawEvent = Mapping[str, Any]
STEP_PREFIX = "ProfilerStep#"
EVENT_SYNC, STREAM_SYNC, CONTEXT_SYNC = "Event Sync", "Stream Sync", "Context Sync"
STREAM_WAIT = "Stream Wait Event"
API = r"^[a-z]+"
OLD_CATEGORIES = {
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
    "Runtime": "cuda_runtime",
}
"""Those of torch before 1.10."""


class EventClass(IntEnum):
    """What an event is; of two with the same times, the smaller one is the outer one."""

    ANNOTATION = 0
    OPERATOR = 1
    PYTHON = 2
    RUNTIME = 3
    DEVICE = 4


class Lane(NamedTuple):
    """A thread (process, thread) or a stream (device, stream)."""

    is_stream: bool
    owner: Any
    number: Any


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """One interval on one lane; ``row`` is its position in the trace, ``rank`` in content order."""

    row: int
    rank: int
    event_class: EventClass
    category: str
    name: str
    lane: Lane
    start_ns: int
    end_ns: int
    correlation: int
    external_id: int | None
    is_collective: bool
    is_pageable: bool

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class SyncRecord:
    """What a ``cuda_sync`` event says: which call waited, and for what."""

    row: int
    kind: str
    start_ns: int
    correlation: int
    device: Any
    stream: Any
    waited_stream: Any | None
    record_correlation: int | None

    @property
    def is_known(self) -> bool:
        """Whether it says enough to decide; waits for events must name the stream waited for."""
        if self.kind in {EVENT_SYNC, STREAM_WAIT}:
            return self.waited_stream is not None
        return self.kind in {STREAM_SYNC, CONTEXT_SYNC}


Arrows = Mapping[tuple[Lane, Lane], Sequence[int]]
"""When the arrows start that lead from one thread to another."""


@dataclass(frozen=True)
class Trace:
    """All that the graph is made of."""

    events: list[Event]
    records: list[SyncRecord]
    autograd_arrows: Arrows
    counts: Counter[str]
    clock_shifts: Mapping[object, int]

    def shift_ns(self, event: Event) -> int:
        """Give what the stamps of an event were moved by."""
        is_work = event.event_class is EventClass.DEVICE
        return self.clock_shifts.get(event.lane.owner, 0) if is_work else 0


def read_events(path: Path) -> list[RawEvent]:
    """Read the events of a Kineto file, plain or gzip, without any number passing a float."""
    data = path.read_bytes()
    if data.startswith(GZIP_MAGIC):
        data = gzip.decompress(data)
    document = json.loads(data.decode("utf-8", errors="replace"), parse_float=Decimal)
    events: list[RawEvent] = document["traceEvents"] if isinstance(document, dict) else document
    return events


def parse_trace(
    raw_events: Iterable[RawEvent], clock_shifts: Mapping[object, int] | None = None
) -> Trace:
    """Sort out what is work, evidence and arrows; positions become rows.

    The stamps of devices are moved by ``clock_shifts``.
    """
    shifts = clock_shifts or {}
    rows = list(enumerate(raw_events))
    counts: Counter[str] = Counter()
    unranked: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    for row, raw in rows:
        event_class = _event_class(raw)
        if event_class is None:
            continue
        fields = _fields(row, raw, event_class)
        if event_class is EventClass.DEVICE:
            shift_ns = shifts.get(fields["lane"].owner, 0)
            fields["start_ns"] += shift_ns
            fields["end_ns"] += shift_ns
        if fields["end_ns"] < fields["start_ns"]:
            counts["negative_duration"] += 1
            continue
        unranked.append((_content_order(raw, fields), fields))
    unranked.sort(key=lambda entry: entry[0])
    return Trace(
        events=[Event(rank=rank, **fields) for rank, (_, fields) in enumerate(unranked)],
        records=sorted(
            (_sync_record(row, raw) for row, raw in rows if _is_span(raw, "cuda_sync")),
            key=lambda record: (record.start_ns, record.correlation, record.row),
        ),
        autograd_arrows=_autograd_arrows(rows),
        counts=counts,
        clock_shifts=shifts,
    )


def _is_span(raw: RawEvent, category: str) -> bool:
    return raw.get("ph") == "X" and _category(raw) == category and "ts" in raw


def _event_class(raw: RawEvent) -> EventClass | None:
    if raw.get("ph") != "X" or "ts" not in raw:
        return None
    category = _category(raw)
    if category.endswith(("runtime", "driver")):
        return EventClass.RUNTIME
    return {
        "user_annotation": EventClass.ANNOTATION,
        "cpu_op": EventClass.OPERATOR,
        "Operator": EventClass.OPERATOR,
        "python_function": EventClass.PYTHON,
        "kernel": EventClass.DEVICE,
        "gpu_memcpy": EventClass.DEVICE,
        "gpu_memset": EventClass.DEVICE,
        "mtia_ccp_events": EventClass.DEVICE,
    }.get(category)


def _category(raw: RawEvent) -> str:
    category = str(raw.get("cat", ""))
    if category == "Operator" and OLD_ANNOTATION.match(str(raw.get("name", ""))):
        return "user_annotation"
    if category == "mtia_ccp_events":
        name = str(raw.get("name", ""))
        if name.startswith("event_wait") and "wait_on_stream" in (raw.get("args") or {}):
            return "cuda_sync"
        return "gpu_memcpy" if name.startswith("dma_request") else category
    return OLD_CATEGORIES.get(category, category)


def _fields(row: int, raw: RawEvent, event_class: EventClass) -> dict[str, Any]:
    args = raw.get("args") or {}
    start_ns = nanoseconds(raw["ts"])
    return {
        "row": row,
        "event_class": event_class,
        "category": _category(raw),
        "name": str(raw.get("name", "")),
        "lane": _lane(raw, args, event_class),
        "start_ns": start_ns,
        "end_ns": start_ns + nanoseconds(raw.get("dur", 0)),
        "correlation": _number(args.get("correlation")) or 0,
        "external_id": _number(args.get("External id", args.get("external id"))),
        "is_collective": bool(args.get("Collective name")),
        "is_pageable": _is_pageable(str(raw.get("name", "")), args),
    }


def _is_pageable(name: str, args: Mapping[str, Any]) -> bool:
    """Say whether a memcpy moves pageable memory: newer exporters have arguments for it."""
    kinds = [args[key] for key in ("src kind", "dst kind") if isinstance(args.get(key), str)]
    return "pageable" in [kind.lower() for kind in kinds] if kinds else "Pageable" in name


def _lane(raw: RawEvent, args: Mapping[str, Any], event_class: EventClass) -> Lane:
    if event_class is EventClass.DEVICE:
        return Lane(
            is_stream=True,
            owner=args.get("device", raw.get("pid")),
            number=args.get("stream", raw.get("tid")),
        )
    return Lane(is_stream=False, owner=raw.get("pid"), number=raw.get("tid"))


def _content_order(raw: RawEvent, fields: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        fields["start_ns"],
        -fields["end_ns"],
        fields["event_class"],
        _identity(raw.get("args") or {}),
        fields["name"],
        _sortable(raw.get("pid")),
        _sortable(raw.get("tid")),
        fields["row"],
    )


def _identity(args: Mapping[str, Any]) -> int:
    """Give the number the profiler gave the event; a record function id of 0 means none."""
    index = _number(args.get("Ev Idx"))
    if index is not None:
        return index
    for name in ("Record function id", "External id", "external id", "correlation"):
        number = _number(args.get(name))
        if number:
            return number
    return 0


def _number(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def _sortable(value: Any) -> tuple[bool, int, str]:
    """Order process and thread ids, which are numbers, also written as texts, or names."""
    number = _number(value)
    return (True, 0, str(value)) if number is None else (False, number, "")


def _sync_record(row: int, raw: RawEvent) -> SyncRecord:
    args = raw.get("args") or {}
    waited = args.get("wait_on_stream")
    record = _number(args.get("wait_on_cuda_event_record_corr_id"))
    return SyncRecord(
        row=row,
        kind=_sync_kind(args, str(raw.get("name"))),
        start_ns=nanoseconds(raw["ts"]),
        correlation=_number(args.get("correlation")) or 0,
        device=args.get("device", raw.get("pid")),
        stream=args.get("stream", raw.get("tid")),
        waited_stream=None if _number(waited) in {None, -1} else waited,
        record_correlation=record if record is not None and record > 0 else None,
    )


def _sync_kind(args: Mapping[str, Any], name: str) -> str:
    """Say what the profiler calls it; MTIA has waits of streams only."""
    return str(args.get("cuda_sync_kind", STREAM_WAIT if name == "event_wait" else name))


def _autograd_arrows(rows: Iterable[tuple[int, RawEvent]]) -> Arrows:
    """List the arrows from forward to backward operators by (from thread, to thread)."""
    ends: dict[str, dict[Any, tuple[Lane, int]]] = {"s": {}, "f": {}}
    for _, raw in rows:
        if raw.get("cat") == "fwdbwd" and raw.get("ph") in ends:
            thread = Lane(is_stream=False, owner=raw.get("pid"), number=raw.get("tid"))
            end = (thread, nanoseconds(raw["ts"]))
            ends[raw["ph"]][raw.get("pid"), raw.get("id")] = end
    arrows: dict[tuple[Lane, Lane], list[int]] = defaultdict(list)
    for arrow, (target, _) in ends["f"].items():
        if arrow in ends["s"]:
            source, start_ns = ends["s"][arrow]
            arrows[source, target].append(start_ns)
    return arrows
