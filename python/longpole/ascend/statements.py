"""What the timeline of a database consists of: events in the Chrome trace-event format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Process", "event", "flat", "microseconds"]

_NO_STREAM: Final = 0xFFFFFFFF
_PLACES: Final = {"CANN": 7, "Ascend Hardware": 13, "HCCL": 15, "Counters": 17}


class Process:
    """A process of the timeline: a layer of the profile, for a device of a program.

    Its id holds the program, the place of the layer and the device, as msprof writes it.
    """

    def __init__(self, layer: str, program: int, device: int = 0) -> None:
        self.number = program if layer == "Python" else program << 10 | _PLACES[layer] << 5 | device
        self._layer = layer
        self._threads: set[int] = set()

    def statements(self) -> Iterator[str]:
        """Name the process and its place."""
        place = _PLACES.get(self._layer, 0)
        yield _metadata("process_name", self.number, 0, {"name": self._layer})
        yield _metadata("process_sort_index", self.number, 0, {"sort_index": place})

    def thread(self, number: int, name: str) -> Iterator[str]:
        """Name a thread, the first time it is asked for."""
        if number not in self._threads:
            self._threads.add(number)
            yield _metadata("thread_name", self.number, number, {"name": name})


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
