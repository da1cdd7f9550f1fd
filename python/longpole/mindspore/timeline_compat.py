"""`{cpu,gpu}_timeline_display_{rank}.json` and its summary, as MindSpore 2.0 to 2.3 write them.

MindSpore computes in floating point, so the stamps of a GPU lose up to 256 ns, and writes metadata
anew for each event. Both are kept here, for comparison with files that it wrote; `timeline` has
the same events without these faults.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from longpole.mindspore.overlap_compat import PER_NS, Item, merged, overlap
from longpole.mindspore.scope_bars import scope_bars
from longpole.mindspore.timeline_labels import labels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.mindspore.layouts import RankFiles

__all__ = ["CompatibleTimeline", "compatible_timeline"]

_THREADS: Final = {
    "Steps": (-4, 100_000),
    "Scope Name": (-3, 100_001),
    "GpuOps": (-2, 100_002),
    "HostCpuOps": (-1, 100_003),
}


@dataclass(slots=True)
class CompatibleTimeline:
    """The text of the two files, and of the cluster file where there are collectives.

    `display` comes in pieces, once: the file is hundreds of times as long as what it is made of.
    """

    display: Iterator[str]
    summary: str
    cluster: str | None = None


@dataclass(slots=True)
class _Tally:
    total_time: float = 0
    num_of_streams: int = 0
    num_of_ops: int = 0
    op_exe_times: int = 0
    max_scope_name_num: int = 0
    streams: set[Any] = field(default_factory=set)

    def text(self) -> str:
        fields = ("total_time", "num_of_streams", "num_of_ops", "op_exe_times")
        known = {name: getattr(self, name) for name in (*fields, "max_scope_name_num")}
        return json.dumps(known | {"num_of_streams": len(self.streams)})


def compatible_timeline(files: RankFiles, limit_bytes: int | None = None) -> CompatibleTimeline:
    """Make the timeline of a GPU where the profile has one, else of the CPU.

    Beyond `limit_bytes`, MindSpore leaves out what comes last in the file. It compares with what
    is on the disk already, so its own file is some kilobytes longer.
    """
    tally = _Tally()
    cluster = None
    if files.get("gpu_op_execute_timestamp"):
        items, keys, cluster = _gpu_items(files, tally)
    else:
        items, keys = _cpu_items(files, tally), None
    for item in items:
        _count(item, tally)
    display = _display(items, files.rank, keys)
    limited = display if limit_bytes is None else _limited(display, limit_bytes)
    end = json.dumps(labels(str(files.rank), "Host CPU OP" if keys is None else "GPU Op"))
    return CompatibleTimeline(chain("[", limited, [end.lstrip("[")]), tally.text(), cluster)


def _limited(texts: Iterator[str], limit_bytes: int) -> Iterator[str]:
    """Give texts until they are longer than the limit, as MindSpore does."""
    size = 0
    for text in texts:
        yield text
        size += len(text)
        if size > limit_bytes:
            return


def _display(items: Sequence[Item], rank: int, keys: list[str] | None) -> Iterator[str]:
    """Write the metadata of all events, then the events, with no space between them."""
    for is_metadata in (True, False):
        for item in items:
            event = _event(item, rank, keys)
            metadata = _named(event, rank)
            for written in metadata if is_metadata else (event,):
                yield f"{json.dumps(written)},"


def _lines(files: RankFiles, kind: str) -> list[str]:
    return files.need(kind).read_text(encoding="utf-8").splitlines()


def _cpu_runs(files: RankFiles, tally: _Tally) -> list[Item]:
    """Read the runs of the CPU; durations from ms to us, by division, as MindSpore does."""
    if files.get("cpu_op_execute_timestamp") is None:
        return []
    items = []
    for line in _lines(files, "cpu_op_execute_timestamp"):
        tally.num_of_ops += 1
        parts = line.strip().split(";")
        for time in parts[-1].split(" "):
            start, duration, *thread = time.split(",")
            lane = parts[1] + "".join(thread[:1])
            items.append(Item(parts[0], lane, start, float(duration) / PER_NS))
    return items


def _cpu_items(files: RankFiles, tally: _Tally) -> list[Item]:
    runs = sorted(_cpu_runs(files, tally), key=lambda item: float(item.start))
    tally.max_scope_name_num = _depth(runs)
    first, last = _step_operators(runs)
    computing = merged(runs, "computation_op").bars
    free = merged(runs, "free_time", gaps=True).gaps
    items = [*runs, *_bars(runs, last), *_steps(runs, first, last)]
    items.sort(key=lambda item: (float(item.start), item.lane))
    items.sort(key=lambda item: float(item.start))
    return [*items, *computing, *free]


def _depth(runs: Sequence[Item]) -> int:
    return max((run.name.count("/") for run in runs), default=0)


def _bars(runs: Sequence[Item], last: str) -> list[Item]:
    rows = [(run.name, run.start, run.duration) for run in runs]
    bars = []
    for subgraph in ("Default", "Gradients", "recompute_Default"):
        for name, start, duration in scope_bars(rows, subgraph, last):
            bars.append(Item(name, "Scope Name", start, duration))
    return bars


def _step_operators(runs: Sequence[Item]) -> tuple[str, str]:
    """Give the first operator and the last one before it comes again."""
    if not runs:
        return "", ""
    skip = int(runs[0].name.startswith("Default/InitDataSetQueue"))
    first = last = runs[skip].name
    for run in runs[skip + 1 :]:
        if run.name == first:
            break
        last = run.name
    return first, last


def _steps(runs: Sequence[Item], first: str, last: str) -> list[Item]:
    steps: list[Item] = []
    start: Any = 0
    for run in runs:
        if run.name == first:
            start = run.start
        if run.name == last:
            duration = (float(run.start) - float(start)) * PER_NS + float(run.duration)
            steps.append(Item(str(len(steps) + 1), "Steps", float(start), duration))
    return steps


def _gpu_items(files: RankFiles, tally: _Tally) -> tuple[list[Item], list[str], str | None]:
    trace = [line.split() for line in _lines(files, "step_trace_profiling")]
    is_async = bool(trace) and trace[0][0].count(",") == 1
    reduces = {
        word.partition(",")[0].rpartition("/")[2] for word in (trace[0][4:] if is_async else ())
    }
    runs, collectives = _gpu_runs(files, reduces, tally)
    runs += _on_gpu_clock(files, tally)
    runs.sort(key=lambda item: float(item.start))
    tally.max_scope_name_num = _depth(runs)
    first, last = _step_operators(runs)
    steps = _steps_of_trace(trace) if is_async else _steps(runs, first, last)
    bars = _bars(runs, last)
    kernels, keys = _kernels(files)
    cluster = None
    items = list(runs)
    if collectives:
        computing = [kernel for kernel in kernels if not kernel.name.startswith("nccl")]
        added, cluster = overlap(runs, computing, collectives, steps)
        items += [*added, *collectives]
        items.sort(key=lambda item: float(item.start))
    items += [*bars, *steps]
    items.sort(key=lambda item: float(item.start))
    items += kernels
    items.sort(key=lambda item: float(item.start))
    return items, keys, cluster


def _gpu_runs(files: RankFiles, reduces: set[str], tally: _Tally) -> tuple[list[Item], list[Item]]:
    runs: list[Item] = []
    collectives: list[Item] = []
    for line in _lines(files, "gpu_op_execute_timestamp"):
        tally.num_of_ops += 1
        parts = line.strip().split(";")
        of_kind = collectives if parts[0].strip().rpartition("/")[2] in reduces else runs
        for time in parts[-1].split(" "):
            start, duration, *_ = time.split(",")
            of_kind.append(Item(parts[0], parts[1], start, duration))
    collectives.sort(key=lambda item: float(item.start))
    return runs, collectives


def _on_gpu_clock(files: RankFiles, tally: _Tally) -> list[Item]:
    runs = _cpu_runs(files, tally)
    if not runs:
        return runs
    host, device = (int(line.rpartition(":")[2]) for line in _lines(files, "start_time")[:2])
    return [run._replace(start=int(run.start) + device - host) for run in runs]


def _steps_of_trace(trace: Sequence[Sequence[str]]) -> list[Item]:
    steps = []
    for number, words in enumerate(trace, 1):
        start, end = (float(words[place].split(",")[1]) for place in (0, 3))
        steps.append(Item(str(number), "Steps", start, (end - start) / 1e3))
    return steps


def _kernels(files: RankFiles) -> tuple[list[Item], list[str]]:
    with files.need("gpu_activity_data").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    keys = [*header[1:3], *header[4:6]]
    args = {row[0]: (*row[1:3], *row[4:6]) for row in rows}
    kernels = []
    for line in _lines(files, "activity_execute_timestamp"):
        name, stream, start, duration = line.split(";")
        kernels.append(Item(name, stream, start, duration, args[name]))
    return kernels, keys


def _is_run(item: Item) -> bool:
    """Whether it is a run of an operator: no kernel, no analysis, no scope and no step."""
    return not item.more and item.lane not in {"Scope Name", "Steps"}


def _count(item: Item, tally: _Tally) -> None:
    if _is_run(item):
        tally.total_time += float(item.duration) / 1000
        tally.op_exe_times += 1
        tally.streams.add(item.lane)


def _event(item: Item, rank: int, keys: list[str] | None) -> dict[str, Any]:
    lane = str(item.lane)
    event: dict[str, Any] = {"name": item.name.rpartition("/")[2], "ph": "X", "tid": lane}
    event["ts"] = float(item.start) / 1000
    event["dur"] = float(item.duration)
    event["pid"] = item.more[0] if len(item.more) == 1 else rank
    if lane == "Scope Name":
        level, _, event["name"] = item.name.partition("-")
        event["scope_level"] = int(level)
    if item.more and keys is not None:
        event["args"] = dict(zip(keys, item.more, strict=False))
        event["tid"] = f"Stream #{lane}"
    return event


def _named(event: dict[str, Any], rank: int) -> Sequence[dict[str, Any]]:
    """Give the thread of an event its number; give its metadata: twice the same, as MindSpore."""
    lane = event["tid"]
    if lane in _THREADS:
        place, event["tid"] = _THREADS[lane]
    elif lane.startswith("Stream"):
        place = event["tid"] = int(lane.rpartition("#")[2])
    else:
        return ()
    text = {"name": "thread_sort_index", "pid": rank, "tid": event["tid"], "ts": 0, "ph": "M"}
    text |= {"cat": "__metadata", "args": {"sort_index": place}}
    return text, text
