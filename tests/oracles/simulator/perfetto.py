"""Turns the records of a run into a Perfetto trace, as a profiler with track events writes one.

Names, categories and names of arguments are numbers that are given out on the way, and are
given out anew where the state of the sequence is cleared. Every thread and every stream is a track,
and so is each depth of a stream whose activities overlap.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .wire import eight, message, number, text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .kineto import Record

__all__ = ["annotated", "perfetto"]

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
