"""What the timeline of a database consists of: events in the Chrome trace-event format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Tracks", "event", "flat", "microseconds", "process_number"]

_PLACES: Final = {"CANN": 7, "Ascend Hardware": 13, "HCCL": 15, "Counters": 17}


def process_number(layer: str, program: int, device: int = 0) -> int:
    """Give the id of a process: that of the program, or of a layer of it, as msprof writes it."""
    place = _PLACES.get(layer)
    return program if place is None else program << 10 | place << 5 | device


class Tracks:
    """Names processes, a layer of the profile each, and their threads, where they are new."""

    def __init__(self) -> None:
        self._named: set[tuple[int, int | None]] = set()

    def named(
        self, layer: str, place: tuple[int, int], thread: int | None = None, name: str = ""
    ) -> Iterator[str]:
        """Name the process of a program and device, and a thread of it."""
        number = process_number(layer, *place)
        if (number, None) not in self._named:
            self._named.add((number, None))
            index = _PLACES.get(layer, 0)
            yield _metadata("process_name", number, 0, {"name": layer})
            yield _metadata("process_sort_index", number, 0, {"sort_index": index})
        if (number, thread) not in self._named:
            self._named.add((number, thread))
            yield _metadata("thread_name", number, thread or 0, {"name": name})


def _metadata(name: str, process: int, thread: int, value: dict[str, Any]) -> str:
    return flat({"ph": "M", "name": name, "pid": process, "tid": thread, "args": value})


def event(
    name: str,
    track: tuple[int, int],
    span_ns: tuple[int, int],
    args: dict[str, Any],
    category: str | None = None,
) -> str:
    """Write an event with a duration on the track (process, thread)."""
    start_ns, end_ns = span_ns
    row: dict[str, Any] = {"ph": "X"}
    if category is not None:
        row["cat"] = category
    row |= {"name": name, "pid": track[0], "tid": track[1]}
    head = flat(row)[:-1]
    times = f'"ts":{microseconds(start_ns)},"dur":{microseconds(end_ns - start_ns)}'
    given = {key: value for key, value in args.items() if value is not None}
    return f'{head},{times},"args":{flat(given)}}}'


def microseconds(ns: int) -> str:
    """Write nanoseconds as decimal microseconds, exactly."""
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{ns // 1000}.{ns % 1000:03d}"


def flat(value: dict[str, Any]) -> str:
    """Write JSON without spaces, the way it is read fastest."""
    return json.dumps(value, separators=(",", ":"))
