"""Turns the records of a run into the Perfetto trace that PyTorch's own writer makes of them.

What ran on a GPU are render stages, whose extra data are texts; memcpys and memsets have no names
of their own. Records of synchronization are slices without a category, and say no stream to wait
for.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .perfetto import annotated
from .wire import eight, message, number, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .kineto import Record

__all__ = ["torch_perfetto"]

_CLEARED, _NEEDS = 1, 2
_STAGES = {
    "kernel": (1, "Kernel"),
    "gpu_memcpy": (2, "Memcpy"),
    "gpu_memset": (3, "Memset"),
    "gpu_user_annotation": (4, "Annotation"),
}
_FIRST_QUEUE = 100
_NAMED = ("kernel", "gpu_user_annotation")
_RENAMED = {"device": "device id", "stream": "stream id", "context": "context id"}
_CALLS = ("cuda_runtime", "cuda_driver")
_CLOCK = 1_700_000_000_000_000_000


class _Numbers(dict[Any, int]):
    """Numbers that are given out from one on."""

    def __missing__(self, key: Any) -> int:
        self[key] = len(self) + 1
        return self[key]


def torch_perfetto(records: Iterable[Record], *, watts: Iterable[float] = ()) -> bytes:
    """Write a trace, with samples of the power of GPU 0 a microsecond apart."""
    slices = [entry for entry in records if entry["ph"] == "X"]
    names, categories, tracks, queues = _Numbers(), _Numbers(), _Numbers(), _Numbers()
    begins, ends, stages = [], [], []
    for entry in slices:
        if entry.get("cat") in _STAGES:
            stages.append(_stage(entry, names, queues))
        elif entry.get("cat") is not None:
            start_ns = entry["start_ns"]
            track = number(11, tracks[entry["pid"], entry["tid"]])
            begins.append(
                _packet(start_ns, 11, number(9, 1) + track, *_slice(entry, names, categories))
            )
            ends.append(
                _packet(start_ns + entry.get("duration_ns", 0), 11, number(9, 2) + track, flags=0)
            )
    specifications = [message(24, number(1, iid), text(2, name)) for iid, name in _STAGES.values()]
    specifications += [
        message(24, number(1, _FIRST_QUEUE + queue), text(2, f"[{stream}] stream {stream}"))
        for (_, stream), queue in queues.items()
    ]
    counter = message(2, message(1, number(1, 0), text(2, "Power (W)")))
    interned = message(
        12,
        message(47, number(1, 1), number(3, 0), counter),
        *(message(2, number(1, iid), text(2, name)) for name, iid in names.items()),
        *(message(1, number(1, iid), text(2, name)) for name, iid in categories.items()),
        *specifications,
        *(message(1000, number(1, iid), text(3, name)) for name, iid in names.items()),
    )
    clocks = (message(1, number(1, clock), number(2, _CLOCK)) for clock in (6, 1))
    samples = (
        _packet(1_000 * row, 52, number(4, 1), message(2, number(1, 0), eight(3, float(value))))
        for row, value in enumerate(watts)
    )
    return b"".join(
        [
            message(1, number(8, _CLOCK), number(10, 1), message(6, *clocks)),
            *_tracks(tracks),
            message(1, number(10, 1), number(13, _CLEARED), interned),
            *begins,
            *ends,
            *stages,
            *samples,
        ]
    )


def _packet(time_ns: int, field: int, *parts: bytes, flags: int = _NEEDS) -> bytes:
    sequence = number(10, 1) + (number(13, flags) if flags else b"")
    return message(1, number(8, _CLOCK + time_ns), sequence, message(field, *parts))


def _tracks(tracks: dict[Any, int]) -> Iterator[bytes]:
    processes = _Numbers()
    for (process, thread), uuid in tracks.items():
        pid = int(process) if str(process).isdecimal() else 0
        if process not in processes:
            named = message(3, number(1, pid), text(6, str(process)))
            yield message(1, message(60, number(1, 10_000 + processes[process]), named))
        tid = number(2, int(thread) if str(thread).isdecimal() else 0)
        described = message(4, number(1, pid), tid, text(5, f"thread {thread}"))
        parent = number(5, 10_000 + processes[process])
        yield message(1, message(60, number(1, uuid), parent, described))


def _slice(entry: Record, names: dict[str, int], categories: dict[str, int]) -> Iterator[bytes]:
    yield number(10, names[entry["name"]])
    args = entry.get("args", {})
    if entry["cat"] == "cuda_sync":
        kept = ("cuda_sync_kind", "stream", "correlation", "device", "context")
        args = {key: args[key] for key in kept if key in args} | {"wait_on_stream": -1}
    else:
        yield number(3, categories[entry["cat"]])
    if entry["cat"] in _CALLS:
        args = {key: args[key] for key in ("cbid", "correlation") if key in args}
    for key, value in args.items():
        if value is not None:
            yield message(4, text(10, key), annotated(value))


def _stage(entry: Record, names: dict[str, int], queues: dict[Any, int]) -> bytes:
    args = entry.get("args", {})
    place = int(args.get("device", entry["pid"])), int(args.get("stream", entry["tid"]))
    parts = [
        number(2, entry["duration_ns"]),
        number(5, 1),
        number(11, place[0]),
        number(13, _FIRST_QUEUE + queues[place]),
        number(14, _STAGES[entry["cat"]][0]),
    ]
    if entry["cat"] in _NAMED:
        parts += [number(19, names[entry["name"]]), number(20, names[entry["name"]])]
    if "grid" in args:
        sizes = (
            message(field, *(number(axis, size) for axis, size in enumerate(args[key], 1)))
            for field, key in ((1, "grid"), (2, "block"))
        )
        parts.append(message(21, *sizes))
    extra = {"device": place[0], "stream": place[1]} | args
    parts += [
        message(6, text(1, _RENAMED.get(key, key)), text(2, _dumped(value)))
        for key, value in extra.items()
        if key not in {"grid", "block", "External id"} and value is not None
    ]
    return _packet(entry["start_ns"], 53, *parts)


def _dumped(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
