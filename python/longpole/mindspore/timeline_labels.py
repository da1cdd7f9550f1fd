"""The names of processes and threads at the end of MindSpore's timeline."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["labels"]

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


def labels(device: str, target: str) -> list[dict[str, Any]]:
    """Give the metadata of a device, in MindSpore's order."""
    processes: dict[Any, str] = {device: target, **_PROCESSES}
    order: dict[Any, int] = {device: 0, **_ORDER}
    return [
        *(_of("process_labels", pid, None, "labels", name) for pid, name in processes.items()),
        *(_of("process_sort_index", pid, None, "sort_index", n) for pid, n in order.items()),
        _of("thread_name", 11000, 100003, "name", "Host CPU Op"),
        *(_of("thread_name", 12000, tid, "name", name) for tid, name in _LANES.items()),
        _of("thread_name", device, 100000, "name", "Steps"),
        _of("thread_name", device, 0, "name", "Ops"),
        *(_of("thread_sort_index", 12000, tid, "sort_index", tid) for tid in _LANES),
        _of("thread_sort_index", device, 100000, "sort_index", -4),
    ]


def _of(name: str, pid: Any, tid: int | None, key: str, value: Any) -> dict[str, Any]:
    place = {"pid": pid} if tid is None else {"pid": pid, "tid": tid}
    return {"name": name, "ph": "M", **place, "args": {key: value}}
