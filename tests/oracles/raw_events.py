"""Count and sum the raw events of traces by plain code, and compare with what tables say.

``python tests/oracles/raw_events.py TRACE ...`` prints each difference. It reads Chrome traces of
torch and databases of Nsight Systems with nothing but `json` and `sqlite3`.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import sqlite3
import sys
from collections import Counter, defaultdict
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from longpole.cli.program import run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
UNLISTED_NS: Final = 1_000
"""The table of gaps leaves out some that are shorter than a profiler can tell."""

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


class Raw(NamedTuple):
    """The events of a trace."""

    works: list[Event]
    calls: list[Event]
    operators: list[Event]
    annotations: list[Event]

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


def read(path: Path) -> Raw:
    """Read the events of a trace."""
    data = path.read_bytes()
    return _of_nsight(path) if data[:6] == b"SQLite" else _of_chrome(data)


def _of_chrome(data: bytes) -> Raw:
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    found = json.loads(text.decode("utf-8-sig", "replace"), parse_float=Decimal)
    events = found["traceEvents"] if isinstance(found, dict) else found
    lists: dict[str, list[Event]] = {name: [] for name in Raw._fields}
    for event in events:
        if isinstance(event, dict) and event.get("ph") == "X":
            with contextlib.suppress(InvalidOperation, KeyError, TypeError, ValueError):
                _add(lists, event)
    return Raw(**lists)


def _add(lists: dict[str, list[Event]], event: dict[str, Any]) -> None:
    args = event.get("args") or {}
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
    elif category in OPERATORS and not event["name"].startswith("ProfilerStep#"):
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
        label = "demangledName" if kind == "kernel" else "null"
        query = f"select {', '.join(columns)}, {label} from {name}"  # noqa: S608 - fixed names
        texts = dict(base.execute("select id, value from StringIds"))
        for start, end, device, stream, correlation, size, text in base.execute(query):
            row = (texts.get(text, str(text)), kind, (device, stream), correlation, size)
            works.append(Event(start, end, *row))
    calls = [
        Event(start, end, "", "call", (thread,), correlation)
        for start, end, thread, correlation in (
            base.execute(
                "select start, end, globalTid, correlationId from CUPTI_ACTIVITY_KIND_RUNTIME"
            )
            if "CUPTI_ACTIVITY_KIND_RUNTIME" in tables
            else ()
        )
    ]
    return Raw(works, calls, [], [])


def union(spans: Iterable[Window]) -> int:
    """Return how long at least one span lasts."""
    total, reached = 0, None
    for start, end in sorted(spans):
        begin = start if reached is None else max(start, reached)
        total += max(0, end - begin)
        reached = end if reached is None else max(reached, end)
    return total


class Difference(NamedTuple):
    """What a table says, and what the events say."""

    path: str
    what: str
    said: Any
    found: Any


class Checks:
    """The checks of one window of a trace."""

    def __init__(self, path: Path, raw: Raw, words: list[str]) -> None:
        self.path, self.raw, self.words = path, raw, words
        self.counts: Counter[str] = Counter()
        self.differences: list[Difference] = []
        self.window: Window = (0, 0)

    @property
    def length(self) -> int:
        return self.window[1] - self.window[0]

    def same(self, what: str, said: Any, found: Any) -> None:
        """Compare a figure."""
        self.counts[what] += 1
        if said != found:
            name = " ".join([self.path.name, *self.words])
            self.differences.append(Difference(name, what, said, found))

    def asked(self, *words: str) -> dict[str, Any]:
        """Return the data of an answer; empty if it abstains."""
        return answered(*words[:1], str(self.path), *words[1:], *self.words)

    def rows(self, table: str, *words: str) -> list[dict[str, Any]] | None:
        """Return the rows of a table; None if it has none to show."""
        found: list[dict[str, Any]] | None = (self.asked("table", table, *words)["data"] or {}).get(
            "rows"
        )
        return found

    def works(self) -> list[Event]:
        return [it for it in self.raw.works if it.touches(self.window)]

    def run(self) -> None:
        """Compare the summary, the path and the tables of the window."""
        found = self.asked("summary", "--top", "1000000")
        if not found["data"]:
            return
        self.window = tuple(found["scope"]["window_ns"])
        self.same("window: length", found["data"]["window"]["duration_ns"], self.length)
        self._step(found["data"]["window"]["step"])
        self._summary(found["data"])
        self._kernels()
        self._activities()
        self._idle()
        self._breakdown()
        self._copies()
        self._path()
        if self.words:
            self._launches()
            self._annotations()
            self._operators()
            self._steps()

    def _step(self, number: int | None) -> None:
        if number is None:
            return
        before, completed = self.raw.completed(number - 1), self.raw.completed(number)
        if before is not None and completed is not None:
            self.same("window: step", self.window, (before, completed))

    def _summary(self, data: dict[str, Any]) -> None:
        devices = self._busy()
        for row in data["devices"]:
            whole = row["whole"]
            self.same("summary: busy", whole["busy_ns"], devices.get(row["device"], 0))
            self.same("summary: busy and idle", whole["busy_ns"] + whole["idle_ns"], self.length)
            for stream in row["streams"]:
                place = row["device"], stream["stream"]
                here = [it for it in self.works() if it.place == place]
                spans = [_clipped(it, self.window) for it in here]
                said = stream["count"], stream["busy_ns"]
                self.same("summary: stream", said, (len(here), union(spans)))
        self.same("summary: kernels", _by_name(data["kernels"]), self._by_name("kernel"))

    def _busy(self) -> dict[Any, int]:
        spans: dict[Any, list[Window]] = defaultdict(list)
        for it in self.works():
            spans[it.place[0]].append(_clipped(it, self.window))
        return {device: union(rows) for device, rows in spans.items()}

    def _by_name(self, kind: str) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for it in self.works():
            if it.kind == kind:
                found[it.name][0] += 1
                found[it.name][1] += it.inside(self.window)
        return dict(found)

    def _kernels(self) -> None:
        rows = self.rows("kernels")
        if rows is not None:
            said = _by_name(row for row in rows if row["kind"] == "kernel")
            self.same("kernels", said, self._by_name("kernel"))

    def _activities(self) -> None:
        rows = self.rows("activities")
        if rows is not None:
            said = Counter((row["start_ns"], row["duration_ns"]) for row in rows)
            found = Counter((it.start, it.end - it.start) for it in self.works())
            self.same("activities", said, found)

    def _idle(self) -> None:
        busy = self._busy()
        sums: Counter[Any] = Counter()
        for row in self.rows("idle") or ():
            sums[row["device"], row["stream"]] += row["duration_ns"]
        for place, idle_ns in sums.items():
            spans = [_clipped(it, self.window) for it in self.works() if _is_at(it, place)]
            self.same("idle", idle_ns, self.length - union(spans))
        gaps: dict[Any, list[Window]] = defaultdict(list)
        for row in self.rows("gaps") or ():
            gaps[row["device"]].append((row["start_ns"], row["start_ns"] + row["duration_ns"]))
        for device, spans in gaps.items():
            works = [_clipped(it, self.window) for it in self.works() if it.place[0] == device]
            idle_ns = union(spans)
            both_ns = union([*spans, *works])
            self.same("gaps: nothing runs", both_ns, idle_ns + busy.get(device, 0))
            self.same("gaps: unlisted", max(self.length - both_ns, UNLISTED_NS), UNLISTED_NS)

    def _breakdown(self) -> None:
        for row in self.rows("breakdown") or ():
            here = [it for it in self.works() if _is_at(it, (row["device"], row["stream"]))]
            busy_ns = union(_clipped(it, self.window) for it in here)
            copy_ns = union(_clipped(it, self.window) for it in here if it.kind == "copy")
            said = row["count"], row["busy_ns"], row["idle_ns"], row["copy_total_ns"]
            found = len(here), busy_ns, self.length - busy_ns, copy_ns
            self.same("breakdown", said, found)

    def _copies(self) -> None:
        rows = self.rows("copies")
        if rows is None:
            return
        said: Counter[Any] = Counter()
        found: Counter[Any] = Counter()
        for row in rows:
            said[row["device"], "count"] += row["count"]
            said[row["device"], "ns"] += row["duration_ns"]
            said[row["device"], "bytes"] += row["bytes"] or 0
        for it in self.works():
            if it.kind == "copy":
                found[it.place[0], "count"] += 1
                found[it.place[0], "ns"] += it.inside(self.window)
                found[it.place[0], "bytes"] += it.n_bytes or 0
        self.same("copies", said, found)

    def _path(self) -> None:
        data = self.asked("path")["data"]
        if not data:
            return
        self.same("path: length", data["length_ns"], self.length)
        self.same("path: kinds", sum(it["duration_ns"] for it in data["kinds"]), self.length)
        rows = self.rows("segments")
        if rows:
            spans = sorted((row["start_ns"], row["start_ns"] + row["duration_ns"]) for row in rows)
            starts = [start for start, _ in spans]
            self.same("segments", starts, [self.window[0], *(end for _, end in spans[:-1])])
            self.same("segments: end", spans[-1][1], self.window[1])

    def _launches(self) -> None:
        rows = self.rows("launches")
        if rows is None:
            return
        called = Counter(it.correlation for it in self.raw.calls if it.correlation)
        linked = [it for it in self.works() if called[it.correlation] == 1]
        said = Counter(row["duration_ns"] for row in rows if row["call"] is not None)
        if max(called.values(), default=0) == 1:
            self.same("launches", said, Counter(it.end - it.start for it in linked))

    def _annotations(self) -> None:
        rows = [row for row in self.rows("annotations") or () if row["side"] == "host"]
        found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for it in self.raw.annotations:
            if it.touches(self.window):
                found[it.name][0] += 1
                found[it.name][1] += it.inside(self.window)
        if rows:
            self.same("annotations", _by_name(rows), dict(found))

    def _operators(self) -> None:
        rows = [row for row in self.rows("operators") or () if row["row"] == "frame"]
        here = [it for it in self.raw.operators if it.touches(self.window)]
        if rows:
            said = {row["name"]: row["count"] for row in rows}
            self.same("operators: count", said, dict(Counter(it.name for it in here)))
            if _nest(here):
                total = {row["name"]: row["total_ns"] for row in rows}
                self.same("operators: time", total, _outermost(here, self.window))

    def _steps(self) -> None:
        marks = {
            int(it.name.removeprefix("ProfilerStep#")): it.end - it.start
            for it in self.raw.annotations
            if it.name.startswith("ProfilerStep#")
        }
        rows = self.rows("steps")
        if rows and marks:
            self.same("steps", {row["step"]: row["duration_ns"] for row in rows}, marks)


def _is_at(event: Event, place: tuple[Any, Any]) -> bool:
    """Whether it runs on a stream of a device, or on any stream if that is None."""
    device, stream = place
    return event.place[0] == device and stream in {None, event.place[1]}


def _clipped(event: Event, window: Window) -> Window:
    return max(event.start, window[0]), min(event.end, window[1])


def _by_name(rows: Iterable[dict[str, Any]]) -> dict[str, list[int]]:
    return {row["name"]: [row["count"], row["duration_ns"]] for row in rows}


def _nest(events: list[Event]) -> bool:
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


def _outermost(events: list[Event], window: Window) -> dict[str, int]:
    """Return the time of each name on all threads; an operator inside its like counts once."""
    spans: dict[tuple[str, Any], list[Window]] = defaultdict(list)
    for it in events:
        spans[it.name, it.place].append(_clipped(it, window))
    found: Counter[str] = Counter()
    for (name, _), of_thread in spans.items():
        found[name] += union(of_thread)
    return dict(found)


def answered(*words: str) -> dict[str, Any]:
    """Return the answer of a command as JSON."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        run([*words, "--json"])
    out.flush()
    text = out.buffer.getvalue().decode()
    found: dict[str, Any] = json.loads(text) if text else {"data": None}
    return found if "data" in found else {"data": None}


def checks(path: Path) -> Iterator[Checks]:
    """Compare the median step, or what is shown instead, and the whole trace."""
    raw = read(path)
    if not raw.works:  # of another format, or without a device
        return
    for words in ([], ["--window", "all"]):
        found = Checks(path, raw, words)
        found.run()
        yield found


if __name__ == "__main__":
    counts: Counter[str] = Counter()
    n_windows = n_differences = 0
    for name in sys.argv[1:]:
        try:
            done = [*checks(Path(name))]
        except (ValueError, sqlite3.Error, OSError, EOFError, KeyError) as error:
            print(f"{name}: not read: {error!r:.90}")
            continue
        for each in done:
            counts += each.counts
            n_windows += bool(each.counts)
            n_differences += len(each.differences)
            for it in each.differences[:6]:
                print(f"{it.path}: {it.what}: {it.said!s:.150} | {it.found!s:.150}")
    print(f"{n_windows} windows, {sum(counts.values())} checks, {n_differences} differences")
    print(dict(counts))
