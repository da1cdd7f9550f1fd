"""Allocations of an Ascend profile, from the files next to its timeline or from its database.

`operator_memory.csv` (or `OP_MEMORY`) has each allocation with its operator: those of the
framework, and those of GE, the graph engine, which have no stream. Framework and graph engine each
have their own totals. `memory_record.csv` (or `MEMORY_RECORD`) has the totals of each component
over time; only components that the first file does not cover are read from it. PTA+GE is the sum of
two components, and APP contains only reserved memory: both are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.files.opening import matching
from longpole.formats.ascend.rows import Database
from longpole.formats.ascend.tables import read_ascend_table
from longpole.trace.allocations import Allocations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_OPERATORS: Final = "operator_memory*.csv"
_RECORD: Final = "memory_record*.csv"
_KIB: Final = 1 << 10
_MIB: Final = 1 << 20
_FRAMEWORKS: Final = frozenset({"PTA", "MindSpore", "MS"})
_GRAPH_ENGINE: Final = "GE"
_GRAPH_PREFIX: Final = "cann::"
_SUMS: Final = frozenset({"PTA+GE", "MindSpore+GE", "MS+GE"})

_Row = dict[str, Any]


def recorded_memory(timeline: Path | None) -> Allocations | None:
    """Read the allocations recorded next to a timeline in an Ascend profile.

    Every block has a unique `address`, which is not a device address.

    Returns
    -------
    Allocations | None
        None if the profile recorded none.

    Raises
    ------
    TraceError
        A file exists but has another format.
    """
    if timeline is None:
        return None
    folder = timeline if timeline.is_dir() else timeline.parent
    of_database = timeline.suffix == ".db"
    blocks, totals = _of_database(timeline) if of_database else _of_files(folder)
    of_engine = _of_engine(blocks)
    rows = [*_changes(blocks, of_engine), *_components(totals, _covered(of_engine))]
    return Allocations.of_rows("profile", sorted(rows, key=_order)) if rows else None


def _order(row: _Row) -> tuple[str, int]:
    return row["device"], row["time_ns"]


def _of_files(folder: Path) -> tuple[list[_Row], list[_Row]]:
    blocks = [row for path in _files(folder, _OPERATORS) for row in _blocks_of(path)]
    totals = [row for path in _files(folder, _RECORD) for row in _totals_of(path)]
    return blocks, totals


def _files(folder: Path, pattern: str) -> list[Path]:
    return [path for path in matching(folder, pattern) if path.is_file()]


def _blocks_of(path: Path) -> Iterator[_Row]:
    for row in read_ascend_table(path).frame.iter_rows(named=True):
        moments = {
            moment: (
                row.get(f"{moment}_at_ns"),
                _bytes(row.get(f"{total}_total_allocated_mb"), _MIB),
                _bytes(row.get(f"{total}_total_reserved_mb"), _MIB),
            )
            for moment, total in (("allocated", "allocation"), ("released", "release"))
        }
        size = _bytes(row["size_kb"], _KIB)
        place = {"device": _device(row.get("device")), "stream": row.get("stream_address")}
        yield {"name": row["name"] or "", "size": size, **place, **moments}


def _totals_of(path: Path) -> Iterator[_Row]:
    for row in read_ascend_table(path).frame.iter_rows(named=True):
        sizes = {name: _size(row, name) for name in ("allocated", "reserved")}
        device = _device(row.get("device"))
        yield {"component": row["component"], "time_ns": row["time_ns"], "device": device, **sizes}


def _size(row: _Row, name: str) -> int | None:
    """Return a size in bytes, which can be 0; None if not recorded."""
    in_mib = _bytes(row.get(f"{name}_mb"), _MIB)
    return _bytes(row.get(f"{name}_kb"), _KIB) if in_mib is None else in_mib


def _of_database(path: Path) -> tuple[list[_Row], list[_Row]]:
    database = Database(path)
    blocks, totals = _blocks_in(database), _totals_in(database)
    database.close()
    return blocks, totals


def _blocks_in(database: Database) -> list[_Row]:
    moments = {
        "allocated": ("allocationTime", "allocationTotalAllocated", "allocationTotalReserved"),
        "released": ("releaseTime", "releaseTotalAllocated", "releaseTotalReserved"),
    }
    times = (name for names in moments.values() for name in names)
    columns = ("name", "size", "deviceId", "streamPtr", *times)
    return [
        {
            "name": database.text(row["name"]),
            "size": _whole(row["size"]),
            "device": _device(row["deviceId"]),
            "stream": row["streamPtr"],
            **{key: tuple(_whole(row[name]) for name in names) for key, names in moments.items()},
        }
        for row in database.rows("OP_MEMORY", columns)
    ]


def _totals_in(database: Database) -> list[_Row]:
    columns = ("component", "timestamp", "totalAllocated", "totalReserved", "deviceId")
    return [
        {
            "component": database.text(row["component"]),
            "time_ns": _whole(row["timestamp"]),
            "device": _device(row["deviceId"]),
            "allocated": _whole(row["totalAllocated"]),
            "reserved": _whole(row["totalReserved"]),
        }
        for row in database.rows("MEMORY_RECORD", columns)
    ]


def _of_engine(blocks: Sequence[_Row]) -> list[bool]:
    """Return which blocks belong to the graph engine."""
    has_streams = any(block["stream"] is not None for block in blocks)
    return [
        block["name"].startswith(_GRAPH_PREFIX) or (has_streams and block["stream"] is None)
        for block in blocks
    ]


def _covered(of_engine: Sequence[bool]) -> frozenset[str]:
    """Return the components whose allocations are complete."""
    framework = _FRAMEWORKS if False in of_engine else frozenset()
    return framework | ({_GRAPH_ENGINE} if True in of_engine else frozenset())


def _changes(blocks: Sequence[_Row], of_engine: Sequence[bool]) -> Iterator[_Row]:
    """Yield an allocation, and its release if recorded, for each block."""
    for number, (block, is_of_engine) in enumerate(zip(blocks, of_engine, strict=True)):
        if block["size"] is None:
            continue
        component = f" {_GRAPH_ENGINE}" if is_of_engine else ""
        for moment, sign in (("allocated", 1), ("released", -1)):
            time_ns, allocated, reserved = block[moment]
            if time_ns is not None and allocated is not None:
                yield {
                    "device": f"{block['device']}{component}",
                    "time_ns": time_ns,
                    "change": "allocated" if sign > 0 else "freed",
                    "n_bytes": sign * block["size"],
                    "allocated_bytes": allocated,
                    "reserved_bytes": reserved,
                    "address": number,
                    "operator": block["name"].removeprefix(_GRAPH_PREFIX),
                }


def _components(totals: Sequence[_Row], covered: frozenset[str]) -> Iterator[_Row]:
    """Yield the changes of each component that has only totals."""
    before: dict[str, int] = {}
    for row in sorted(totals, key=lambda it: it["time_ns"] or 0):
        component, allocated = row["component"], row["allocated"]
        is_known = None not in {allocated, row["time_ns"], component}
        if not is_known or component in _SUMS or component in covered:
            continue
        place = f"{row['device']} {component}"
        change = allocated - before.get(place, allocated)
        before[place] = allocated
        yield {
            "device": place,
            "time_ns": row["time_ns"],
            "change": "allocated" if change > 0 else "freed" if change < 0 else "reserved",
            "n_bytes": change,
            "allocated_bytes": allocated,
            "reserved_bytes": row["reserved"],
            "category": component,
        }


def _device(value: object) -> str:
    """Return the name of a device as in other recordings: `npu:0`."""
    text = "" if value is None else str(value)
    return f"npu:{text}" if text.isdecimal() else text.lower() or "npu"


def _bytes(value: float | None, unit: int) -> int | None:
    return None if value is None or not abs(value) < 1 << 50 else round(value * unit)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None
