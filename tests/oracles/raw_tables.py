"""Count and sum raw events as the tables of waits, queues, memory, functions and modules do.

Each function takes the checks of a window (`raw_events.Checks`) and compares one table.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from oracles.raw_file import nest, outermost, union

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oracles.raw_events import Checks
    from oracles.raw_file import Event, Sync, Window

ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")
MODULE: Final = "nn.Module: "
COMMUNICATION: Final = re.compile(
    r"[nrhm]ccl|ccl::|cross_device_reduce|all_?reduce|all_?gather|reduce_?scatter|sendrecv",
    re.IGNORECASE,
)


def queue(checks: Checks) -> None:
    """An activity is queued from the start of its call to its own start."""
    rows = checks.rows("queue", "--by", "time")
    links = checks.links()
    if rows is None or links is None:
        return
    start, end = checks.window
    changes: dict[Any, list[tuple[int, int]]] = defaultdict(list)
    for work, call in links:
        changes[work.place] += [(call.start, 1), (work.start, -1)]
    said: dict[Any, list[tuple[int, int]]] = defaultdict(list)
    for row in rows:
        said[row["device"], row["stream"]].append((row["time_ns"], row["queue_length"]))
    found = {}
    for place, of_place in changes.items():
        length = sum(change for time, change in of_place if time < start)
        lengths = [(start, length)] if length else []
        for time, change in sorted(of_place):
            if start <= time <= end:
                length += change
                lengths.append((time, length))
        if lengths:
            found[place] = lengths
    checks.same("queue: changes", dict(said), found)
    for row in checks.rows("queue") or ():
        lengths = found.get((row["device"], row["stream"]), [])
        spans = pairwise([*lengths, (end, 0)])
        area = sum(length * (until - time) for (time, length), (until, _) in spans)
        most = max(length for _, length in lengths) if lengths else None
        checks.same("queue: most", (row["count"], row["max"]), (len(lengths), most))
        mean = row["time_mean"]
        if mean is not None:
            checks.same("queue: mean", round(mean, 6), round(area / checks.length, 6))


def memory(checks: Checks) -> None:
    """Changes of each device in the time of the window, and totals as recorded."""
    data = checks.asked("table", "memory")["data"]
    start, end = checks.window
    inside = [it for it in checks.raw.memory if start <= it.time < end]
    if not data or not inside or any(it.total is None for it in inside):
        return
    churn: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for row in data["churn"]:
        names = "n_allocations", "allocated_bytes", "n_frees", "freed_bytes"
        added = (row[name] for name in names)
        churn[row["device"]] = [a + b for a, b in zip(churn[row["device"]], added, strict=True)]
    for row in data["devices"]:
        here = [it for it in inside if it.device == row["device"]]
        new = [it.n_bytes for it in here if it.n_bytes > 0]
        old = [-it.n_bytes for it in here if it.n_bytes < 0]
        found = [len(new), sum(new), len(old), sum(old)]
        checks.same("memory: changes", churn[row["device"]], found)
        checks.same("memory: device", (row["n_allocations"], row["churn_bytes"]), tuple(found[:2]))
        before = here[0].total - here[0].n_bytes
        peak = max(before, *(it.total for it in here))
        said = row["start_bytes"], row["peak_bytes"], row["end_bytes"]
        checks.same("memory: totals", said, (before, peak, here[-1].total))
        reserved = max((it.reserved for it in here if it.reserved), default=None)
        checks.same("memory: reserved", row["peak_reserved_bytes"], reserved)
    checks.same(
        "memory: devices", {it["device"] for it in data["devices"]}, {it.device for it in inside}
    )


def communication(checks: Checks) -> None:
    """Kernels of communication libraries, and the parts in which a compute kernel ran."""
    rows = checks.rows("communication")
    if rows is None:
        return
    said = Counter(
        (it["name"], it["start_ns"], it["duration_ns"], it["hidden_ns"], it["exposed_ns"])
        for it in rows
        if it["device"] is not None and COMMUNICATION.search(it["name"])
    )
    found: Counter[Any] = Counter()
    kernels = [it for it in checks.raw.works if it.kind == "kernel"]
    compute = [it for it in kernels if not COMMUNICATION.search(it.name)]
    for it, _ in checks.own():
        if it.kind == "kernel" and COMMUNICATION.search(it.name):
            others = (
                (max(other.start, it.start), min(other.end, it.end))
                for other in compute
                if other.place[0] == it.place[0] and other.touches((it.start, it.end))
            )
            whole = it.end - it.start
            hidden = union(others)
            found[it.name, it.start, whole, hidden, whole - hidden] += 1
    if found or said:
        checks.same("communication", said, found)


def sync(checks: Checks) -> None:
    """A call waits for the work of its device or stream that was launched before, and ends last."""
    links = checks.links()
    if links is None or len(links) != len(checks.raw.works):  # some were launched unknown when
        return
    works = {row["event"]: row for row in checks.rows("activities") or ()}
    said: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row in checks.rows("sync") or ():
        if row["evidence"] == "recorded" and row["kind"] == "sync_return":
            source = works.get(row["source"], {"start_ns": 0, "duration_ns": 0})
            end = source["start_ns"] + source["duration_ns"]
            said[row["start_ns"], row["duration_ns"]].append(end)
    calls = {it.correlation: it for it in checks.raw.calls if it.correlation}
    for wait in checks.raw.syncs:
        call = calls.get(wait.correlation)
        if call is None or wait.kind not in {"Context Sync", "Stream Sync"}:
            continue
        if not checks.window[0] <= call.end <= checks.window[1]:
            continue
        before = [
            work.end
            for work, launch in links
            if launch.start < call.start and _is_awaited(work, wait)
        ]
        if max(before, default=0) > call.end:  # the clocks contradict each other
            continue
        found = said.get((call.start, call.end - call.start), [])
        checks.same("sync: awaited", max(found, default=None), max(before, default=None))


def _is_awaited(work: Event, wait: Sync) -> bool:
    device, stream = work.place
    is_stream = wait.kind == "Stream Sync"
    return bool(device == wait.device and (not is_stream or stream == wait.stream))


def functions(checks: Checks) -> None:
    """Calls of each Python function, and their time; one inside its like counts once."""
    data = checks.asked("table", "functions")["data"]
    if not data or not checks.raw.functions:
        return
    rows = [it for it in data["rows"] if it["row"] == "frame" and it["count"]]
    here = [
        it._replace(name=ADDRESS.sub("", it.name))
        for it in checks.raw.functions
        if it.touches(checks.window)
    ]
    said = {row["name"]: row["count"] for row in rows}
    checks.same("functions: count", said, dict(Counter(it.name for it in here)))
    if nest(here):
        total = {row["name"]: row["total_ns"] for row in rows}
        checks.same("functions: time", total, outermost(here, checks.window))


def modules(checks: Checks) -> None:
    """Calls of each path of modules, and their time."""
    rows = checks.rows("modules", "--by", "path")
    here = [it for it in checks.raw.functions if it.name.startswith(MODULE)]
    here = [it for it in here if it.touches(checks.window)]
    if rows is None or not here or not nest(here):
        return
    calls: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for path, it in paths(here):
        calls[path] += 1
        times[path] += it.inside(checks.window)
    named = [it for it in rows if it["row"] == "frame" and it["count"]]
    checks.same("modules: count", {it["name"]: it["count"] for it in named}, dict(calls))
    checks.same("modules: time", {it["name"]: it["total_ns"] for it in named}, dict(times))


def device_times(checks: Checks) -> None:
    """The times on devices of all rows add up to those of all activities."""
    own = checks.own()
    found = sum(end - start for _, (start, end) in own)
    for table in ("operators", "functions", "modules"):
        rows = checks.rows(table)
        if rows is not None:
            said = sum(it["device_self_ns"] + (it.get("backward_self_ns") or 0) for it in rows)
            checks.same(f"{table}: on devices", said, found)


def phases(checks: Checks) -> None:
    """Phases cover the time of each main thread, and the busy time of each device, once."""
    rows = checks.rows("phases")
    if rows is None:
        return
    host = checks.host()
    own = checks.own()
    spans: dict[Any, list[Window]] = defaultdict(list)
    for it, span in own:
        spans[it.place[0]].append(span)
    said = sum(it["count"] for it in rows), sum(it["device_ns"] for it in rows)
    checks.same("phases: on devices", said, (len(own), sum(map(union, spans.values()))))
    host_ns = sum(it["host_ns"] or 0 for it in rows)
    length = host[1] - host[0] if host else 0
    if length and (checks.words or checks.step is not None):
        checks.same("phases: on the host", host_ns % length, 0)


def paths(events: list[Event]) -> Iterator[tuple[str, Event]]:
    """Yield each call of a module with the modules around it."""
    threads: dict[Any, list[Event]] = defaultdict(list)
    for it in sorted(events, key=lambda it: (it.start, -it.end)):
        open_ = threads[it.place]
        while open_ and open_[-1].end <= it.start:
            open_.pop()
        open_.append(it)
        yield "/".join(each.name.removeprefix(MODULE) for each in open_), it
