"""Allocations of XLA's allocators, from the events that they write into `xplane.pb`.

`MemoryAllocation` and `MemoryDeallocation` contain the sizes, and the totals of the allocator. Its
capacity is what it has handed out and what it can still hand out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from longpole.formats.xplane.planes import event_types, lines, planes, stat_names
from longpole.formats.xplane.wire import (
    double,
    fields,
    integer,
    message_of,
    messages,
    text,
)
from longpole.trace.allocations import Allocations, Pool
from longpole.trace.sweeps import around

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from longpole.formats.xplane.wire import Message
    from longpole.trace.trace import Trace

_PLANE: Final = "/host:CPU"
_CHANGES: Final = {"MemoryAllocation": ("allocated", 1), "MemoryDeallocation": ("freed", -1)}
_NS: Final = 1_000
_LARGEST: Final = (1 << 63) - 1

_Values = dict[str, Any]


def recorded_memory(trace: Trace) -> Allocations | None:
    """Read the allocations of a trace; None if its format has none, or the file is gone.

    `device` is the name of the allocator, such as `GPU_0_bfc`, and `operator` the outermost event
    around the change, such as `PjitFunction(step)`.
    """
    path = trace.path
    if trace.format != "xplane" or path is None or not path.is_file():
        return None
    changes = sorted(_changes(path), key=lambda it: it["time_ns"])
    if not changes:
        return None
    inside = _inside(trace)
    rows = [
        {
            "device": change["allocator_name"],
            "time_ns": change["time_ns"],
            "change": change["change"],
            "n_bytes": change["sign"] * change["allocation_bytes"],
            "allocated_bytes": change["bytes_allocated"],
            "address": change.get("addr"),
            **inside.get((change["time_ns"], change["sign"]), {}),
        }
        for change in changes
    ]
    return Allocations.of_rows("profile", rows, _pools(changes))


def _changes(path: Path) -> Iterator[_Values]:
    for name, plane in planes(path):
        if name != _PLANE:
            continue
        types = {number: text(kind, 2) for number, kind in event_types(plane).items()}
        wanted = {number: _CHANGES[kind] for number, kind in types.items() if kind in _CHANGES}
        if not wanted:
            continue
        names = stat_names(plane)
        for line in lines(plane):
            yield from _of_line(line, wanted, names)


def _of_line(
    line: memoryview, wanted: Mapping[int, tuple[str, int]], names: Mapping[int, str]
) -> Iterator[_Values]:
    start_ns = next((value for number, value in fields(line) if number == 3), 0)  # noqa: PLR2004
    for number, event in fields(line):
        if number != 4 or isinstance(event, int) or isinstance(start_ns, memoryview):  # noqa: PLR2004
            continue
        kind = next((value for field, value in fields(event) if field == 1), None)
        if not isinstance(kind, int) or kind not in wanted:
            continue
        content = message_of(event)
        change, sign = wanted[kind]
        offset_ps = integer(content, 2)
        values = dict(_value(stat, names) for stat in messages(content, 4))
        time_ns = start_ns + round(offset_ps / _NS)
        found = {**values, "change": change, "sign": sign, "time_ns": time_ns}
        if _is_sound(found):
            yield found


def _value(stat: Message, names: Mapping[int, str]) -> tuple[str, Any]:
    value: Any = None
    if 2 in stat:  # noqa: PLR2004 - the fields of XStat, one of which it has
        value = double(stat[2][-1])
    elif 7 in stat:  # noqa: PLR2004
        value = names.get(integer(stat, 7))
    elif 5 in stat:  # noqa: PLR2004
        value = text(stat, 5)
    else:
        value = integer(stat, 4 if 4 in stat else 3)  # noqa: PLR2004
    return names.get(integer(stat, 1), ""), value


def _is_sound(change: _Values) -> bool:
    sizes = [change.get("allocation_bytes"), change.get("bytes_allocated"), change["time_ns"]]
    is_known = all(type(size) is int and 0 <= size <= _LARGEST for size in sizes)
    return is_known and isinstance(change.get("allocator_name"), str)


def _inside(trace: Trace) -> dict[tuple[int, int], _Values]:
    """Return the events around each change by its time: `event`, `inside` and `operator`."""
    events = trace.events
    named = events.filter(pl.col("kind").cast(pl.String) == "operator").select(
        "event", "parent", "start_ns", name=pl.col("name").cast(pl.String)
    )
    rows = named.filter(pl.col("name").is_in(list(_CHANGES)))
    outermost = around(trace, rows["event"], named["event"], "outermost").alias("outermost")
    names = named.select(outermost="event", operator="name")
    owned = rows.with_columns(outermost).join(names, on="outermost", how="left")
    found = {}
    for event, parent, start_ns, name, outer, operator in owned.iter_rows():
        row = {"event": event, "inside": parent, "operator": None if outer == event else operator}
        found[start_ns, _CHANGES[name][1]] = row
    return found


def _pools(changes: list[_Values]) -> dict[str, Pool]:
    """Return the capacity of each allocator, and its state at the peak."""
    peaks: dict[str, _Values] = {}
    for change in changes:
        name = change["allocator_name"]
        if name not in peaks or change["bytes_allocated"] > peaks[name]["bytes_allocated"]:
            peaks[name] = change
    return {
        name: Pool(
            peak["bytes_allocated"] + peak["bytes_available"],
            peak.get("fragmentation"),
            peak.get("peak_bytes_in_use"),
        )
        for name, peak in peaks.items()
        if isinstance(peak.get("bytes_available"), int)
    }
