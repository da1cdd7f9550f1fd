"""Turns the records of a run into a Perfetto trace, as a profiler with track events writes one.

Names, categories and names of arguments are numbers that are given out on the way, and are
given out anew where the state of the sequence is cleared. Every thread and every stream is a track,
and so is each depth of a stream whose activities overlap.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .kineto import Record


def number(field: int, value: int) -> bytes:
    """Write a number of variable length; negative ones take ten bytes."""
    return _variable(field << 3) + _variable(value & 0xFFFF_FFFF_FFFF_FFFF)


def eight(field: int, value: float) -> bytes:
    """Write an integer or a float of eight bytes."""
    packed = struct.pack("<d", value) if isinstance(value, float) else struct.pack("<Q", value)
    return _variable(field << 3 | 1) + packed


def message(field: int, *parts: bytes) -> bytes:
    """Write a message, or bytes, of a length."""
    whole = b"".join(parts)
    return _variable(field << 3 | 2) + _variable(len(whole)) + whole


def text(field: int, value: str) -> bytes:
    """Write a text."""
    return message(field, value.encode())


def _variable(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


_SEQUENCE = 7
_CLEARED, _NEEDS = 1, 2
_NAMES, _CATEGORIES, _KEYS = 2, 1, 3
_BEGIN, _END, _INSTANT = 1, 2, 3
_CLEAR_EVERY = 500


@dataclass(slots=True)
class _State:
    """What the sequence gave numbers to since its state was cleared."""

    known: dict[tuple[int, str], int] = field(default_factory=dict)
    fresh: list[bytes] = field(default_factory=list)

    def id(self, table: int, name: str) -> int:
        if (table, name) not in self.known:
            self.known[table, name] = len(self.known) + 1
            self.fresh.append(message(table, number(1, len(self.known)), text(2, name)))
        return self.known[table, name]


def perfetto(records: Iterable[Record]) -> bytes:
    """Write a trace: descriptions of tracks last, for they may stand anywhere."""
    placed = _placed(entry for entry in records if entry["ph"] in {"X", "i"})
    flows = _flows(records)
    state = _State()
    packets: list[bytes] = []
    edges = sorted(_edges(placed), key=lambda edge: edge[:4])
    for number_of, (time_ns, _, _, _, track, entry) in enumerate(edges):
        flags = _NEEDS
        if number_of % _CLEAR_EVERY == 0:
            state, flags = _State(), _CLEARED | _NEEDS
        event = _end(track) if entry is None else _begin(entry, track, state, flows)
        interned = [message(12, *state.fresh)] if state.fresh else []
        state.fresh = []
        packets.append(
            message(
                1,
                number(8, time_ns),
                number(10, _SEQUENCE),
                message(11, event),
                *interned,
                number(13, flags),
            )
        )
    packets += [message(1, number(10, _SEQUENCE), message(60, it)) for it in _tracks(placed)]
    return b"".join(packets)


def _placed(entries: Iterable[Record]) -> list[tuple[tuple[str, str, int], Record]]:
    """Return each record its track: process, thread, and how many others it crosses."""
    open_ns: dict[tuple[str, str, int], list[int]] = {}
    placed = []
    key = lambda entry: (entry["start_ns"], -entry.get("duration_ns", 0))  # noqa: E731
    for entry in sorted(entries, key=key):
        start_ns = entry["start_ns"]
        end_ns = start_ns + entry.get("duration_ns", 0)
        for depth in range(1_000):
            track = (str(entry["pid"]), str(entry["tid"]), depth)
            ends = open_ns.setdefault(track, [])
            while ends and ends[-1] <= start_ns:
                ends.pop()
            if not ends or end_ns <= ends[-1]:
                ends.append(end_ns)
                placed.append((track, entry))
                break
    return placed


def _edges(
    placed: list[tuple[tuple[str, str, int], Record]],
) -> Iterable[tuple[int, int, int, int, int, Record | None]]:
    """Yield begins and ends with what orders them: of equal times inner ends come first."""
    numbers: dict[tuple[str, str, int], int] = {}
    for row, (track, entry) in enumerate(placed):
        uuid = numbers.setdefault(track, len(numbers) + 1)
        start_ns, lasts_ns = entry["start_ns"], entry.get("duration_ns", 0)
        if lasts_ns == 0 and entry["ph"] == "X":
            yield start_ns, 1, row, 0, uuid, entry
            yield start_ns, 1, row, 1, uuid, None
        else:
            yield start_ns, 1, row, 0, uuid, entry
            if entry["ph"] == "X":
                yield start_ns + lasts_ns, 0, -row, 0, uuid, None


def _begin(
    entry: Record, track: int, state: _State, flows: dict[tuple[str, str, int], list[bytes]]
) -> bytes:
    parts = [
        number(9, _BEGIN if entry["ph"] == "X" else _INSTANT),
        number(11, track),
        number(10, state.id(_NAMES, entry["name"])),
    ]
    if "cat" in entry:
        parts.append(number(3, state.id(_CATEGORIES, entry["cat"])))
    for key, value in entry.get("args", {}).items():
        if value is not None:
            annotation = number(1, state.id(_KEYS, key)) + annotated(value)
            parts.append(message(4, annotation))
    place = (str(entry["pid"]), str(entry["tid"]), entry["start_ns"])
    if entry.get("cat") in {"kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver"}:
        parts += flows.get(place, [])
    return b"".join(parts)


def _end(track: int) -> bytes:
    return number(9, _END) + number(11, track)


def annotated(value: Any) -> bytes:
    """Write the value of an annotation."""
    match value:
        case bool():
            return number(2, int(value))
        case int():
            return number(4, value)
        case float():
            return eight(5, value)
        case list():
            return b"".join(message(12, annotated(part)) for part in value)
        case _:
            return text(6, str(value))


def _flows(records: Iterable[Record]) -> dict[tuple[str, str, int], list[bytes]]:
    flows: dict[tuple[str, str, int], list[bytes]] = {}
    for entry in records:
        if entry.get("cat") == "ac2g" and entry["ph"] in {"s", "f"}:
            place = (str(entry["pid"]), str(entry["tid"]), entry["start_ns"])
            flows.setdefault(place, []).append(eight(47 if entry["ph"] == "s" else 48, entry["id"]))
    return flows


def _tracks(placed: list[tuple[tuple[str, str, int], Record]]) -> Iterable[bytes]:
    processes: dict[str, int] = {}
    tracks = dict.fromkeys(track for track, _ in placed)
    for uuid, (process, thread, _depth) in enumerate(tracks, 1):
        pid = int(process) if process.isdecimal() else 0
        if process not in processes:
            processes[process] = 1_000_000 + len(processes)
            named = text(6, process)
            yield number(1, processes[process]) + message(3, number(1, pid), named)
        parent = number(5, processes[process])
        if pid > 100:
            described = message(4, number(1, pid), number(2, int(thread)))
        else:
            described = text(2, f"device {process}, stream {thread}" if thread else process)
        yield number(1, uuid) + parent + described


# Turns the records of a run into the Perfetto trace that PyTorch's own writer makes of them.


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
            *_torch_tracks(tracks),
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


def _torch_tracks(tracks: dict[Any, int]) -> Iterator[bytes]:
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
