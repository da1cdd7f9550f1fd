"""Elements of a database's timeline: events in the Chrome trace-event format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "DAMAGED_ROW",
    "Tracks",
    "damaged_sample",
    "event",
    "flat",
    "microseconds",
    "process_number",
]

_DAMAGED: Final = "damaged"
"""A word that is not JSON, so that the reader counts the value as damaged."""
DAMAGED_ROW: Final = '"a row of the database is damaged"'
"""Replaces a missing row: not an event, so that the reader counts a loss."""
_PLACES: Final = {"CANN": 7, "Ascend Hardware": 13, "HCCL": 15, "Counters": 17}


def process_number(layer: str, program: int, device: int = 0) -> int:
    """Return the id of a process: the program or one of its layers, as written by msprof."""
    place = _PLACES.get(layer)
    return program if place is None else program << 10 | place << 5 | device


class Tracks:
    """Emits the names of processes (one per layer) and threads when they first occur."""

    def __init__(self) -> None:
        self._named: set[tuple[int, int | None]] = set()

    def named(
        self, layer: str, place: tuple[int, int], thread: int | None = None, name: str = ""
    ) -> Iterator[str]:
        """Yield the names of a program and device's process, and of a thread."""
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
    row: dict[str, Any],
    args: dict[str, Any],
    category: str | None = None,
) -> str:
    """Return an event with the times of a row on the track (process, thread).

    Damaged values become malformed JSON, which the reader skips and counts.
    """
    start_ns, end_ns = row["startNs"], row["endNs"]
    head: dict[str, Any] = {"ph": "X"}
    if category is not None:
        head["cat"] = category
    head |= {"name": name, "pid": track[0], "tid": track[1]}
    is_timed = start_ns is not None and end_ns is not None
    start = microseconds(start_ns) if is_timed else _DAMAGED
    duration = microseconds(end_ns - start_ns) if is_timed else "0"
    given = {key: value for key, value in args.items() if value is not None}
    text = f'{flat(head)[:-1]},"ts":{start},"dur":{duration},"args":{flat(given)}'
    damaged = "".join(f',"damaged{place}":{_DAMAGED}' for place in range(row["n_damaged"]))
    return f"{text}{damaged}}}" if is_timed else f"{text}}}"


def damaged_sample(name: str) -> str:
    """Return a sample without a time, which the reader skips and counts."""
    return f'{flat({"ph": "C", "name": name})[:-1]},"ts":{_DAMAGED}}}'


def microseconds(ns: int) -> str:
    """Format nanoseconds as decimal microseconds, exactly."""
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{ns // 1000}.{ns % 1000:03d}"


def flat(value: dict[str, Any]) -> str:
    """Format JSON without spaces, for the fastest reading."""
    return json.dumps(value, separators=(",", ":"))
