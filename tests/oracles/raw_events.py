"""Count and sum the raw events of traces by plain code, and compare with what tables say.

``python -m oracles.raw_events TRACE ...`` in `tests` prints each difference. `raw_file.py` reads
them.
"""

from __future__ import annotations

import contextlib
import io
import json
import sqlite3
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from longpole.cli.program import run
from oracles import raw_tables
from oracles.raw_file import Event, Raw, Window, clipped, nest, outermost, read, union

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

UNLISTED_NS: Final = 1_000
"""The table of gaps leaves out some that are shorter than a profiler can tell."""


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
        self.step: int | None = None

    @property
    def length(self) -> int:
        return self.window[1] - self.window[0]

    def same(self, what: str, said: Any, found: Any) -> None:
        """Compare a figure."""
        self.counts[what] += 1
        if said != found:
            if isinstance(said, dict) and isinstance(found, dict):
                keys = [key for key in {**said, **found} if said.get(key) != found.get(key)]
                said, found = ({key: it.get(key) for key in keys} for it in (said, found))
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

    def host(self) -> Window | None:
        """Return the time in which the host work of the window begins; None if unknown."""
        if self.words:
            return self.window
        if self.step is None:
            return self.raw.host_between(self.window)
        return self.raw.host_of(self.step)

    def own(self) -> list[tuple[Event, Window]]:
        """Return the activities that belong to the window, each with its time that counts."""
        host = self.host()
        if self.words or host is None:  # the whole trace
            return [(it, clipped(it, self.window)) for it in self.works()]
        return self.raw.launched_in(host, self.window)

    def links(self) -> list[tuple[Event, Event]] | None:
        """Return the activities with their calls; None if a number belongs to several calls."""
        calls = [it for it in self.raw.calls if it.correlation]
        called = {it.correlation: it for it in calls}
        if len(called) != len(calls):
            return None
        return [(it, called[it.correlation]) for it in self.raw.works if it.correlation in called]

    def run(self) -> None:
        """Compare the summary, the path and the tables of the window."""
        found = self.asked("summary", "--top", "1000000")
        if not found["data"]:
            return
        self.window = tuple(found["scope"]["window_ns"])
        self.same("window: length", found["data"]["window"]["duration_ns"], self.length)
        self.step = found["data"]["window"]["step"]
        self._step(self.step)
        self._summary(found["data"])
        self._activities()
        self._idle()
        self._breakdown()
        self._path()
        raw_tables.queue(self)
        raw_tables.memory(self)
        raw_tables.sync(self)
        if self.host() is not None:
            self._kernels()
            self._copies()
            raw_tables.communication(self)
            raw_tables.device_times(self)
            raw_tables.phases(self)
        if self.words:
            raw_tables.functions(self)
            raw_tables.modules(self)
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
                spans = [clipped(it, self.window) for it in here]
                said = stream["count"], stream["busy_ns"]
                self.same("summary: stream", said, (len(here), union(spans)))
        if self.host() is not None:
            said = _by_name(data["kernels"])
            self.same("summary: kernels", said, _demangled(self._by_name("kernel"), said))

    def _busy(self) -> dict[Any, int]:
        spans: dict[Any, list[Window]] = defaultdict(list)
        for it in self.works():
            spans[it.place[0]].append(clipped(it, self.window))
        return {device: union(rows) for device, rows in spans.items()}

    def _by_name(self, kind: str) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for it, (start, end) in self.own():
            if it.kind == kind:
                found[it.name][0] += 1
                found[it.name][1] += end - start
        return dict(found)

    def _kernels(self) -> None:
        rows = self.rows("kernels")
        if rows is not None:
            said = _by_name(row for row in rows if row["kind"] == "kernel")
            self.same("kernels", said, _demangled(self._by_name("kernel"), said))

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
            spans = [clipped(it, self.window) for it in self.works() if _is_at(it, place)]
            self.same("idle", idle_ns, self.length - union(spans))
        gaps: dict[Any, list[Window]] = defaultdict(list)
        for row in self.rows("gaps") or ():
            gaps[row["device"]].append((row["start_ns"], row["start_ns"] + row["duration_ns"]))
        for device, spans in gaps.items():
            works = [clipped(it, self.window) for it in self.works() if it.place[0] == device]
            idle_ns = union(spans)
            both_ns = union([*spans, *works])
            self.same("gaps: nothing runs", both_ns, idle_ns + busy.get(device, 0))
            self.same("gaps: unlisted", max(self.length - both_ns, UNLISTED_NS), UNLISTED_NS)

    def _breakdown(self) -> None:
        for row in self.rows("breakdown") or ():
            here = [it for it in self.works() if _is_at(it, (row["device"], row["stream"]))]
            busy_ns = union(clipped(it, self.window) for it in here)
            copy_ns = union(clipped(it, self.window) for it in here if it.kind == "copy")
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
        for it, (start, end) in self.own():
            if it.kind == "copy":
                found[it.place[0], "count"] += 1
                found[it.place[0], "ns"] += end - start
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
        rows = [row for row in self.rows("operators") or () if row["count"]]
        here = [it for it in self.raw.operators if it.touches(self.window)]
        if rows:
            said = {row["name"]: row["count"] for row in rows}
            self.same("operators: count", said, dict(Counter(it.name for it in here)))
            if nest(here):
                total = {row["name"]: row["total_ns"] for row in rows}
                self.same("operators: time", total, outermost(here, self.window))

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


def _by_name(rows: Iterable[dict[str, Any]]) -> dict[str, list[int]]:
    return {row["name"]: [row["count"], row["duration_ns"]] for row in rows}


def _demangled(found: dict[str, list[int]], said: dict[str, list[int]]) -> dict[str, list[int]]:
    """Return figures under the names of an answer, where the file has mangled names of C++."""
    others = [name for name in said if name not in found]
    renamed = {}
    for name, figures in found.items():
        twins = [it for it in others if said[it] == figures] if name.startswith("_Z") else []
        renamed[twins[0] if twins else name] = figures
        others = [it for it in others if it != twins[0]] if twins else others
    return renamed


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
