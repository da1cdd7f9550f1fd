"""`{cpu,gpu}_timeline_display_{rank}.json` and its summary, as written by MindSpore 2.0 to 2.3.

Metadata is repeated for each event, as in MindSpore, for comparison with its files.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from longpole.mindspore.output import csv_text
from longpole.mindspore.timeline_rows import Row, Rows, timeline_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from longpole.mindspore.layouts import RankFiles

__all__ = ["CompatibleTimeline", "compatible_timeline"]

_THREADS: Final = {
    "Steps": (-4, 100_000),
    "Scope Name": (-3, 100_001),
    "GpuOps": (-2, 100_002),
    "HostCpuOps": (-1, 100_003),
}
_PROCESSES: Final = {
    9000: "AICPU OP",
    10000: "Communication Op",
    11000: "Host CPU OP",
    12000: "Op Overlap Analyse",
    13000: "Activity Op",
}
_ORDER: Final = {9000: 10, 10000: 20, 11000: 30, 12000: 40}
_LANES: Final = {
    7999: "Merged Computation Op",
    8000: "Pure Communication Op",
    8001: "Merged Communication Op",
    8002: "Free Time",
}


@dataclass(slots=True)
class CompatibleTimeline:
    """The text of the two files, and of the cluster file if there are collectives.

    `display` is an iterator of chunks: the file is hundreds of times as long as its source.
    """

    display: Iterator[str]
    summary: str
    cluster: str | None


def compatible_timeline(files: RankFiles, limit_bytes: int | None = None) -> CompatibleTimeline:
    """Create the timeline of a GPU if the profile has one, else of the CPU.

    Beyond `limit_bytes`, MindSpore drops the end of the file. It compares with what is already on
    disk, so its own file is some kilobytes longer.
    """
    found = timeline_rows(files)
    display = _display(found, files.rank)
    limited = display if limit_bytes is None else _limited(display, limit_bytes)
    end = json.dumps(_labels(str(files.rank), "Host CPU OP" if found.keys is None else "GPU Op"))
    cluster = None if found.cluster is None else _cluster_text(found.cluster)
    return CompatibleTimeline(chain("[", limited, [end.lstrip("[")]), _summary(found), cluster)


def _limited(texts: Iterator[str], limit_bytes: int) -> Iterator[str]:
    """Yield strings until the limit is exceeded, as MindSpore does."""
    size = 0
    for text in texts:
        yield text
        size += len(text)
        if size > limit_bytes:
            return


def _summary(found: Rows) -> str:
    """Format the number of operator runs, without kernels, analysis, scopes and steps."""
    total_time, runs = 0.0, []
    for row in found.rows:
        if not row.more and row.lane not in {"Scope Name", "Steps"}:
            total_time += row.duration / 1000
            runs.append(row.lane)
    fields = {
        "total_time": total_time if runs else 0,
        "num_of_streams": len(set(runs)),
        "num_of_ops": found.n_operators,
        "op_exe_times": len(runs),
        "max_scope_name_num": found.depth,
    }
    return json.dumps(fields)


def _cluster_text(columns: Mapping[str, Sequence[float]]) -> str:
    rows = zip(*columns.values(), strict=False)
    return csv_text([list(columns), *([round(value / 1e3, 4) for value in row] for row in rows)])


def _display(found: Rows, rank: int) -> Iterator[str]:
    """Yield the metadata of all events, then the events, without spaces in between."""
    for is_metadata in (True, False):
        for row in found.rows:
            event = _event(row, rank, found.keys)
            metadata = _named(event, rank)
            for written in metadata if is_metadata else (event,):
                yield f"{json.dumps(written)},"


def _event(row: Row, rank: int, keys: Sequence[str] | None) -> dict[str, Any]:
    lane = str(row.lane)
    event: dict[str, Any] = {"name": row.name.rpartition("/")[2], "ph": "X", "tid": lane}
    event |= {"ts": row.start / 1000, "dur": row.duration}
    event["pid"] = int(row.more[0]) if len(row.more) == 1 else rank
    if lane == "Scope Name":
        level, _, event["name"] = row.name.partition("-")
        event["scope_level"] = int(level)
    if row.more and keys is not None:
        event["args"] = dict(zip(keys, row.more, strict=False))
        event["tid"] = f"Stream #{lane}"
    return event


def _named(event: dict[str, Any], rank: int) -> Sequence[dict[str, Any]]:
    """Set the number of an event's thread; return its metadata twice, as MindSpore does."""
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


def _labels(device: str, target: str) -> list[dict[str, Any]]:
    """Return the metadata of a device, in MindSpore's order."""
    processes: dict[Any, str] = {device: target, **_PROCESSES}
    order: dict[Any, int] = {device: 0, **_ORDER}
    return [
        *(_label("process_labels", pid, None, "labels", name) for pid, name in processes.items()),
        *(
            _label("process_sort_index", pid, None, "sort_index", index)
            for pid, index in order.items()
        ),
        _label("thread_name", 11000, 100003, "name", "Host CPU Op"),
        *(_label("thread_name", 12000, tid, "name", name) for tid, name in _LANES.items()),
        _label("thread_name", device, 100000, "name", "Steps"),
        _label("thread_name", device, 0, "name", "Ops"),
        *(_label("thread_sort_index", 12000, tid, "sort_index", tid) for tid in _LANES),
        _label("thread_sort_index", device, 100000, "sort_index", -4),
    ]


def _label(name: str, pid: Any, tid: int | None, key: str, value: Any) -> dict[str, Any]:
    place = {"pid": pid} if tid is None else {"pid": pid, "tid": tid}
    return {"name": name, "ph": "M", **place, "args": {key: value}}
