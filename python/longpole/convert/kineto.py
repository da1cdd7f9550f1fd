"""The tables of a trace as Kineto's JSON, for traces that are no JSON themselves."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import polars as pl

    from longpole.trace import Trace

__all__ = ["write_kineto"]

_CATEGORIES: Final = {
    "operator": "cpu_op",
    "python": "python_function",
    "runtime": "cuda_runtime",
    "driver": "cuda_driver",
    "annotation": "user_annotation",
    "kernel": "kernel",
    "copy": "gpu_memcpy",
    "fill": "gpu_memset",
    "device_annotation": "gpu_user_annotation",
    "synchronization": "cuda_sync",
}
"""Kineto's categories for kinds; events of other kinds keep their own."""
_NUMBERS: Final = {
    "correlation": "correlation",
    "external_id": "External id",
    "device": "device",
    "stream": "stream",
}
_STATEMENTS: Final = {"process_labels": "labels", "process_sort_index": "sort_index"}


def write_kineto(trace: Trace, output: Path, *, is_packed: bool) -> int:
    """Write all tables of a trace as Kineto's JSON; give the number of entries.

    Kinds, names, times, places, ids, kept arguments, arrows, counters and the names of processes
    and threads read back as they are here. Categories are Kineto's for each kind.
    """
    opened: Any = gzip.open if is_packed else open
    n_written = 0
    with opened(output, "wt", encoding="utf-8", newline="\n") as file:
        file.write('{"traceEvents":[')
        for entry in _entries(trace):
            file.write(f"{',' if n_written else ''}\n{_line(entry)}")
            n_written += 1
        # Behind the events, where what repairs a trace puts them too.
        file.write('\n],"schemaVersion":1')
        if trace.rank is not None:
            rank = {"rank": trace.rank, "world_size": trace.world_size}
            file.write(f',"distributedInfo":{json.dumps(rank)}')
        file.write("}\n")
    return n_written


def _entries(trace: Trace) -> Iterator[dict[str, Any]]:
    for name, process, thread, value in _rows(
        trace.metadata_events, "name", "process", "thread", "text"
    ):
        args = {_STATEMENTS.get(name, "name"): value}
        yield {"ph": "M", "name": name, **_place(process, thread), "ts": 0, "args": args}
    yield from _events(trace)
    columns = ("phase", "flow", "category", "name", "process", "thread", "time_ns")
    for phase, flow, category, name, process, thread, time_ns in _rows(trace.flows, *columns):
        entry = {"ph": phase, "id": flow, "name": name, **_place(process, thread)}
        yield _known(entry | {"cat": category, "ts": time_ns})
    for name, series, process, time_ns, value in _rows(
        trace.counters, "name", "series", "process", "time_ns", "value"
    ):
        entry = {"ph": "C", "name": name, "ts": time_ns, "args": {series: value}}
        yield entry | _place(process, "")


def _events(trace: Trace) -> Iterator[dict[str, Any]]:
    args = _Arguments(trace)
    columns = ("event", "kind", "category", "name", "process", "thread", "start_ns", "duration_ns")
    rows = _rows(trace.events, *columns, *_NUMBERS)
    for event, kind, category, name, process, thread, start_ns, duration_ns, *numbers in rows:
        given = dict(zip(_NUMBERS.values(), numbers, strict=True))
        # A reader takes the thread of a GPU activity without a stream for one, if it is a number.
        is_on_device = kind in {"kernel", "copy", "fill", "device_annotation", "synchronization"}
        is_bare = is_on_device and given["stream"] is None
        entry = {
            "ph": "i" if kind == "instant" else "X",
            "cat": _CATEGORIES.get(kind, category),
            "name": name,
            **_place(process, f"line {thread}" if is_bare else thread),
            "ts": start_ns,
            "dur": duration_ns,
        }
        yield _known(entry) | {"args": _known(given) | args.of(event)}


class _Arguments:
    """The arguments of events, which come in order of the events within a category."""

    def __init__(self, trace: Trace) -> None:
        tables = [
            table for category in trace.categories if (table := trace.args(category)) is not None
        ]
        self._rows = [table.iter_rows(named=True) for table in tables]
        self._next = [next(rows, None) for rows in self._rows]

    def of(self, event: int) -> dict[str, Any]:
        """Give the arguments of an event behind those that were asked for before."""
        found: dict[str, Any] = {}
        for place, row in enumerate(self._next):
            if row is not None and row["event"] == event:
                self._next[place] = next(self._rows[place], None)
                found |= {key: _value(value) for key, value in row.items() if key != "event"}
        return _known(found)


def _rows(frame: pl.DataFrame, *columns: str) -> Iterator[tuple[Any, ...]]:
    return frame.select(columns).iter_rows()


def _known(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if value is not None}


def _place(process: str, thread: str) -> dict[str, Any]:
    return {"pid": _number(process), "tid": _number(thread)}


def _number(text: str) -> int | str:
    return int(text) if text.isdecimal() and str(int(text)) == text else text


def _value(value: Any) -> Any:
    """Give a list that was kept as text as the list."""
    if isinstance(value, str) and value.startswith("["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _line(entry: dict[str, Any]) -> str:
    """Give the text of an entry, with all digits of its times, which a double may not hold."""
    times = [f'"{key}":{_microseconds(entry.pop(key))},' for key in ("ts", "dur") if key in entry]
    return "{" + "".join(times) + json.dumps(entry, separators=(",", ":"))[1:]


def _microseconds(time_ns: int) -> str:
    return f"{'-' if time_ns < 0 else ''}{abs(time_ns) // 1_000}.{abs(time_ns) % 1_000:03}"
