"""Read the events of Chrome traces of torch and of databases of Nsight Systems, by plain code.

It shares nothing with longpole: `json` and `sqlite3` read the file.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import sqlite3
from collections import Counter, defaultdict
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

KINDS: Final = {
    "kernel": "kernel",
    "gpu_memcpy": "copy",
    "gpu_memset": "copy",
    "Kernel": "kernel",
    "Memcpy": "copy",
    "Memset": "copy",
}
CALLS: Final = ("cuda_runtime", "cuda_driver", "Runtime", "hip_runtime", "hip_driver")
OPERATORS: Final = ("cpu_op", "Operator")
ANNOTATIONS: Final = ("user_annotation",)
MARKS: Final = {
    "cpu_op": ("ProfilerStep#",),
    "Operator": ("ProfilerStep#", "enumerate(DataLoader)#", "Optimizer."),
}
"""Names of annotations, which torch wrote as operators before it had a category for them."""

Window = tuple[int, int]


class Event(NamedTuple):
    """An event of a thread or of a device."""

    start: int
    end: int
    name: str
    kind: str
    place: tuple[Any, ...]
    """Device and stream, or process and thread."""
    correlation: Any = None
    n_bytes: int | None = None

    def inside(self, window: Window) -> int:
        """Return how long it runs in a window."""
        return max(0, min(self.end, window[1]) - max(self.start, window[0]))

    def touches(self, window: Window) -> bool:
        """Whether it is in a window; an instant at an end of the window is."""
        if self.start == self.end:
            return window[0] <= self.start <= window[1]
        return self.start < window[1] and self.end > window[0]


class Change(NamedTuple):
    """An allocation or a free."""

    time: int
    device: str
    n_bytes: int
    total: int | None
    reserved: int | None


class Sync(NamedTuple):
    """A recorded wait of a call for a device, or for a stream of it."""

    correlation: Any
    kind: str
    device: Any
    stream: Any


class Raw(NamedTuple):
    """The events of a trace."""

    works: list[Event]
    calls: list[Event]
    operators: list[Event]
    annotations: list[Event]
    functions: list[Event]
    memory: list[Change]
    syncs: list[Sync]

    def completed(self, number: int) -> int | None:
        """Return when a step and all work that was launched in it had ended."""
        marks = [it for it in self.annotations if it.name == f"ProfilerStep#{number}"]
        if len(marks) != 1:
            return None
        [mark] = marks
        called = {it.correlation: it.start for it in self.calls if it.correlation is not None}
        ends = [
            it.end
            for it in self.works
            if mark.start <= called.get(it.correlation, mark.start - 1) < mark.end
        ]
        return max([mark.end, *ends])

    def host_of(self, number: int) -> Window | None:
        """Return the time in which the host work of a step begins; None without a single mark."""
        marks = [it for it in self.annotations if it.name.startswith("ProfilerStep#")]
        [mark] = [it for it in marks if it.name == f"ProfilerStep#{number}"] or [None]
        if mark is None or len({it.place for it in marks}) != 1:
            return None
        return max((it.end for it in marks if it.end <= mark.start), default=mark.start), mark.end

    def host_between(self, window: Window) -> Window | None:
        """Return the time from the first launch for a window to the first for the next.

        None if several threads launch, which may begin at different times.
        """
        calls = {it.correlation: it for it in self.calls if it.correlation is not None}
        linked = [(it, calls[it.correlation]) for it in self.works if it.correlation in calls]
        starts = [
            min((call.start for it, call in linked if it.start >= time), default=None)
            for time in window
        ]
        if len({call.place for _, call in linked}) != 1 or starts[0] is None:
            return None
        return starts[0], max(it.start for it in self.calls) + 1 if starts[1] is None else starts[1]

    def launched_in(self, host: Window, window: Window) -> list[tuple[Event, Window]]:
        """Return the activities that belong to a step, each with its time that counts.

        One without a launching call belongs to the step of the next of its stream that has one; to
        none before the first of these, and to the window that it runs in after the last.
        """
        called = {it.correlation: it.start for it in self.calls if it.correlation is not None}
        found = []
        for stream in {it.place for it in self.works}:
            works = sorted((it for it in self.works if it.place == stream), key=lambda it: it.start)
            linked = [it for it in works if it.correlation in called]
            launch = None
            for work in reversed(works):
                launch = called.get(work.correlation, launch)
                if launch is None and work.touches(window):
                    found.append((work, clipped(work, window)))
                is_before = linked and work.start < linked[0].start
                if launch is not None and host[0] <= launch < host[1] and not is_before:
                    found.append((work, (work.start, work.end)))
        return found


def read(path: Path) -> Raw:
    """Read the events of a trace."""
    data = path.read_bytes()
    return _of_nsight(path) if data[:6] == b"SQLite" else _of_chrome(data)


def _of_chrome(data: bytes) -> Raw:
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    found = json.loads(text.decode("utf-8-sig", "replace"), parse_float=Decimal)
    events = found["traceEvents"] if isinstance(found, dict) else found
    lists: dict[str, list[Any]] = {name: [] for name in Raw._fields}
    for event in events:
        if isinstance(event, dict):
            with contextlib.suppress(InvalidOperation, KeyError, TypeError, ValueError):
                if event.get("ph") == "X":
                    _add(lists, event)
                elif event.get("ph") == "i" and event["name"] == "[memory]":
                    lists["memory"].append(_change(event["ts"], event["args"]))
    lists["memory"].sort(key=lambda it: it.time)
    return Raw(**lists)


DEVICES: Final = {0: "cpu", 1: "cuda", 6: "hip", 9: "xla", 12: "xpu", 13: "mps"}


def _change(ts: Any, args: dict[str, Any]) -> Change:
    device = DEVICES[args["Device Type"]]
    if args["Device Id"] >= 0:
        device = f"{device}:{args['Device Id']}"
    totals = args.get("Total Allocated"), args.get("Total Reserved") or None
    return Change(int(Decimal(ts) * 1000), device, args["Bytes"], *totals)


def _add(lists: dict[str, list[Any]], event: dict[str, Any]) -> None:
    args = event.get("args") or {}
    event["name"] = event["name"].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    start = int(Decimal(event["ts"]) * 1000)
    end = start + int(Decimal(event["dur"]) * 1000)
    if end < start:
        return
    category = event.get("cat")
    thread = event.get("pid"), event.get("tid")
    if category in KINDS:
        device = args.get("device", event.get("pid")), args.get("stream", event.get("tid"))
        row = (event["name"], KINDS[category], device)
        size = args.get("bytes", args.get("Bytes"))
        lists["works"].append(Event(start, end, *row, args.get("correlation"), size))
    elif category in CALLS:
        correlation = args.get("correlation")
        lists["calls"].append(Event(start, end, event["name"], "call", thread, correlation))
    elif category == "cuda_sync":
        device, stream = args.get("device"), args.get("stream")
        lists["syncs"].append(Sync(args.get("correlation"), event["name"], device, stream))
    elif category == "python_function":
        lists["functions"].append(Event(start, end, event["name"], "function", thread))
    elif category in OPERATORS and not event["name"].startswith(MARKS[category]):
        lists["operators"].append(Event(start, end, event["name"], "operator", thread))
    elif category in (*ANNOTATIONS, *OPERATORS):
        lists["annotations"].append(Event(start, end, event["name"], "annotation", thread))


_COPIES: Final = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}


def _of_nsight(path: Path) -> Raw:
    base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    tables = {name for (name,) in base.execute("select name from sqlite_master")}
    works: list[Event] = []
    for table, kind in (("KERNEL", "kernel"), ("MEMCPY", "copy"), ("MEMSET", "copy")):
        name = f"CUPTI_ACTIVITY_KIND_{table}"
        if name not in tables:
            continue
        known = {row[1] for row in base.execute(f"pragma table_info({name})")}
        columns = ["start", "end", "deviceId", "streamId", "correlationId"]
        columns.append("bytes" if "bytes" in known else "null")
        columns.append("globalPid" if "globalPid" in known else "0")
        label = "demangledName" if kind == "kernel" else "null"
        query = f"select {', '.join(columns)}, {label} from {name}"  # noqa: S608 - fixed names
        texts = dict(base.execute("select id, value from StringIds"))
        for start, end, device, stream, number, size, process, text in base.execute(query):
            # Numbers are those of a process.
            correlation = (process >> 24, number)
            row = (texts.get(text, str(text)), kind, (device, stream), correlation, size)
            works.append(Event(start, end, *row))
    calls = [
        Event(start, end, "", "call", (thread,), (thread >> 24, number))
        for start, end, thread, number in (
            base.execute(
                "select start, end, globalTid, correlationId from CUPTI_ACTIVITY_KIND_RUNTIME"
            )
            if "CUPTI_ACTIVITY_KIND_RUNTIME" in tables
            else ()
        )
    ]
    ranges = [*_ranges(base)] if "NVTX_EVENTS" in tables else []
    operators = [it for it in ranges if it.kind == "operator"]
    annotations = [it for it in ranges if it.kind == "annotation"]
    return Raw(works, calls, operators, annotations, [], [], [])


NUMBER: Final = re.compile(r", (?:op_id|seq) = .*", re.DOTALL)
"""What `torch.autograd.profiler.emit_nvtx` adds to the names of operators."""


OPERATOR: Final = re.compile(r"[a-z_0-9]+::[\w.]+,")


def _ranges(base: sqlite3.Connection) -> Iterator[Event]:
    names = dict(base.execute("select id, value from StringIds"))
    query = (
        "select start, end, text, textId, globalTid from NVTX_EVENTS where eventType in (59, 60)"
    )
    for start, end, text, number, thread in base.execute(query):
        name = names.get(number, "") if text is None else text
        named = NUMBER.sub("", name)
        kind = "operator" if named != name and OPERATOR.match(name) else "annotation"
        if end is not None:
            yield Event(start, end, named, kind, (thread,))


def union(spans: Iterable[Window]) -> int:
    """Return how long at least one span lasts."""
    total, reached = 0, None
    for start, end in sorted(spans):
        begin = start if reached is None else max(start, reached)
        total += max(0, end - begin)
        reached = end if reached is None else max(reached, end)
    return total


def clipped(event: Event, window: Window) -> Window:
    return max(event.start, window[0]), min(event.end, window[1])


def nest(events: list[Event]) -> bool:
    """Whether each operator of a thread ends before those that it began in."""
    threads: dict[Any, list[Event]] = defaultdict(list)
    for it in sorted(events, key=lambda it: (it.start, -it.end)):
        open_ = threads[it.place]
        while open_ and open_[-1].end <= it.start:
            open_.pop()
        if open_ and it.end > open_[-1].end:
            return False
        open_.append(it)
    return True


def outermost(events: list[Event], window: Window) -> dict[str, int]:
    """Return the time of each name on all threads; an operator inside its like counts once."""
    spans: dict[tuple[str, Any], list[Window]] = defaultdict(list)
    for it in events:
        spans[it.name, it.place].append(clipped(it, window))
    found: Counter[str] = Counter()
    for (name, _), of_thread in spans.items():
        found[name] += union(of_thread)
    return dict(found)
