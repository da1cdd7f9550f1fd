"""Writes a run as `rocprofv3` writes it: a database of rocpd, or JSON.

The records hold kernels, copies, calls and ranges; memsets are kernels of the HIP runtime. What
CUDA alone has, such as synchronization records, has no place in them; calls keep the names that
the simulator gave them.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .kineto import Record
    from .run import Run

VECTOR_REGISTERS: Final = 72
ACCUMULATION_REGISTERS: Final = 32
"""Registers of each work item of all kernels."""

_ID: Final = "_00001234_5678_7abc_8def_0123456789ab"
_COLUMNS: Final = {
    "rocpd_string": "id INTEGER NOT NULL PRIMARY KEY, guid TEXT, string TEXT NOT NULL",
    "rocpd_info_process": "id INTEGER NOT NULL PRIMARY KEY, guid TEXT, pid INTEGER NOT NULL",
    "rocpd_info_thread": "id INTEGER NOT NULL PRIMARY KEY, guid TEXT, tid INTEGER NOT NULL",
    "rocpd_info_agent": "id INTEGER NOT NULL PRIMARY KEY, guid TEXT, type TEXT,"
    " absolute_index INTEGER, logical_index INTEGER, name TEXT, product_name TEXT",
    "rocpd_info_kernel_symbol": "id INTEGER NOT NULL PRIMARY KEY, guid TEXT, kernel_name TEXT,"
    f" display_name TEXT, arch_vgpr_count INTEGER DEFAULT {VECTOR_REGISTERS},"
    f" accum_vgpr_count INTEGER DEFAULT {ACCUMULATION_REGISTERS}",
    "rocpd_event": "id INTEGER NOT NULL PRIMARY KEY, guid TEXT, category_id INTEGER,"
    " stack_id INTEGER, extdata TEXT",
}
_PLACE: Final = {
    "inline": "pid INTEGER, tid INTEGER, agent_id INTEGER, queue_id INTEGER, stream_id INTEGER,"
    ' start BIGINT, "end" BIGINT,',
    "tracks": "track_id INTEGER NOT NULL, start_id INTEGER NOT NULL, end_id INTEGER NOT NULL,",
}
_RECORDS: Final = {
    "rocpd_kernel_dispatch": "kernel_id INTEGER, group_segment_size INTEGER,"
    " workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER,"
    " grid_size_x INTEGER, grid_size_y INTEGER, grid_size_z INTEGER, event_id INTEGER",
    "rocpd_memory_copy": "name_id INTEGER, dst_agent_id INTEGER, src_agent_id INTEGER,"
    " size INTEGER, event_id INTEGER",
    "rocpd_region": "name_id INTEGER, event_id INTEGER",
}
_TRACKS: Final = {
    "rocpd_track": "id INTEGER NOT NULL PRIMARY KEY, pid INTEGER, tid INTEGER, agent_id INTEGER,"
    " queue_id INTEGER, stream_id INTEGER",
    "rocpd_timestamp": "id INTEGER NOT NULL PRIMARY KEY, value BIGINT NOT NULL",
}
_DIRECTIONS: Final = {
    "HtoD": "HOST_TO_DEVICE",
    "DtoH": "DEVICE_TO_HOST",
    "DtoD": "DEVICE_TO_DEVICE",
    "PtoP": "DEVICE_TO_DEVICE",
}
_INTERFACES: Final = (
    ("cuda_runtime", "HIP_RUNTIME_API", "hip_api"),
    ("cuda_driver", "HSA_CORE_API", "hsa_api"),
    ("user_annotation", "MARKER_CORE_API", "marker_api"),
)
_KINDS: Final = ("KERNEL_DISPATCH", "MEMORY_COPY", *(kind for _, kind, _ in _INTERFACES))
_FIRST_AGENT: Final = 1
FILL_KERNEL: Final = "__amd_rocclr_fillBufferAligned"
_FILL_BLOCK: Final = 256


def write_rocpd(run: Run, path: str | Path, *, tracks: bool = False) -> None:
    """Write the records of a run as a database, with times in the rows or in `tracks`."""
    with closing(sqlite3.connect(path)) as database:
        _Database(database, tracks=tracks).write(run)
        database.commit()


class _Database:
    """The numbers that were given out so far."""

    def __init__(self, database: sqlite3.Connection, *, tracks: bool) -> None:
        self._database = database
        self._tracks = tracks
        self._numbers: dict[tuple[str, Any], int] = {}
        place = _PLACE["tracks" if tracks else "inline"]
        records = {
            name: f"id INTEGER NOT NULL PRIMARY KEY, guid TEXT, {place} {columns}"
            for name, columns in _RECORDS.items()
        }
        for name, columns in {**_COLUMNS, **records, **(_TRACKS if tracks else {})}.items():
            database.execute(f'CREATE TABLE "{name}{_ID}" ({columns})')
            database.execute(f'CREATE VIEW "{name}" AS SELECT * FROM "{name}{_ID}"')  # noqa: S608 - names of this file

    def write(self, run: Run) -> None:
        """Write everything down."""
        pid = next(entry["pid"] for entry in run.events if entry["ph"] == "M")
        self._insert("rocpd_info_process", {"id": 1, "pid": pid})
        agents = [("CPU", 0), *(("GPU", device) for device in range(run.program.n_devices))]
        for number, (kind, device) in enumerate(agents):
            row = {"id": number, "type": kind, "logical_index": device, "product_name": "MI300X"}
            self._insert("rocpd_info_agent", row)
        for entry in written(run):
            self._record(entry, int(pid))

    def _record(self, entry: Record, pid: int) -> None:
        args = entry["args"]
        if entry["cat"] == "kernel":
            row = {"kernel_id": self._number("rocpd_info_kernel_symbol", "display_name", entry)}
            row |= {"group_segment_size": args["shared memory"]}
            for place, axis in enumerate("xyz"):
                row |= {f"workgroup_size_{axis}": args["block"][place]}
                row |= {f"grid_size_{axis}": args["grid"][place] * args["block"][place]}
            self._row("rocpd_kernel_dispatch", entry, pid, row, kind=_KINDS[0])
        elif entry["cat"] == "gpu_memcpy":
            name = self._text(f"MEMORY_COPY_{direction(entry)}")
            agent = _FIRST_AGENT + args["device"]
            row = {"name_id": name, "size": args["bytes"], "dst_agent_id": agent}
            self._row("rocpd_memory_copy", entry, pid, row, kind=_KINDS[1])
        else:
            kind = next(kind for category, kind, _ in _INTERFACES if category == entry["cat"])
            is_marker = entry["cat"] == "user_annotation"
            name = self._text("roctxRangePushA" if is_marker else entry["name"])
            extra = json.dumps({"message": entry["name"]} if is_marker else {})
            self._row("rocpd_region", entry, pid, {"name_id": name}, kind=kind, extra=extra)

    def _row(
        self,
        table: str,
        entry: Record,
        pid: int,
        row: dict[str, Any],
        *,
        kind: str,
        extra: str = "{}",
    ) -> None:
        args = entry["args"]
        event = {"category_id": self._text(kind), "stack_id": args.get("correlation", 0)}
        row |= {"event_id": self._insert("rocpd_event", event | {"extdata": extra})}
        is_on_device = "device" in args
        place = {"pid": 1 if self._tracks else pid, "tid": int(entry["tid"])}
        if is_on_device:
            place |= {"tid": None, "agent_id": _FIRST_AGENT + args["device"]}
            place |= {"queue_id": 1, "stream_id": args["stream"]}
        start_ns = entry["start_ns"]
        times = (start_ns, start_ns + entry["duration_ns"])
        if not self._tracks:
            start, end = times
            self._insert(table, {**row, **place, "start": start, '"end"': end})
            return
        track = self._insert("rocpd_track", place)
        start, end = (self._insert("rocpd_timestamp", {"value": time}) for time in times)
        self._insert(table, {**row, "track_id": track, "start_id": start, "end_id": end})

    def _insert(self, table: str, row: dict[str, Any]) -> int:
        marks = ", ".join("?" * len(row))
        done = self._database.execute(
            f'INSERT INTO "{table}{_ID}" ({", ".join(row)}) VALUES ({marks})',  # noqa: S608 - names of this file
            tuple(row.values()),
        )
        return done.lastrowid or 0

    def _text(self, text: str) -> int:
        return self._known("rocpd_string", "string", text)

    def _number(self, table: str, column: str, entry: Record) -> int:
        return self._known(table, column, entry["name"])

    def _known(self, table: str, column: str, text: str) -> int:
        number = self._numbers.get((table, text))
        if number is None:
            number = self._numbers[table, text] = self._insert(table, {column: text})
        return number


def write_rocprof_json(run: Run, path: str | Path) -> None:
    """Write the records of a run as JSON of `rocprofv3`."""
    document = _Document()
    for entry in written(run):
        document.add(entry)
    process = {
        "metadata": {"pid": next(entry["pid"] for entry in run.events if entry["ph"] == "M")},
        "agents": _agents(run.program.n_devices),
        **document.records(),
    }
    text = json.dumps({"rocprofiler-sdk-tool": [process]}, separators=(",", ":"))
    Path(path).write_text(text, encoding="utf-8")


def _agents(n_devices: int) -> list[dict[str, Any]]:
    processor = {"id": {"handle": 800}, "type": 1, "logical_node_type_id": 0}
    devices = [
        {"id": {"handle": 900 + device}, "type": 2, "logical_node_type_id": device, "name": "gfx"}
        for device in range(n_devices)
    ]
    return [processor, *devices]


class _Document:
    """The records of a process by buffer, and the names that they refer to by number."""

    def __init__(self) -> None:
        self._operations: dict[str, dict[str, int]] = {kind: {} for kind in _KINDS}
        self._symbols: dict[str, int] = {}
        self._markers: list[dict[str, Any]] = []
        self._buffers: dict[str, list[dict[str, Any]]] = {"kernel_dispatch": [], "memory_copy": []}
        self._buffers |= {name: [] for _, _, name in _INTERFACES}

    def add(self, entry: Record) -> None:
        """Add an entry to its buffer."""
        row: dict[str, Any] = {
            "thread_id": entry["tid"],
            "start_timestamp": entry["start_ns"],
            "end_timestamp": entry["start_ns"] + entry["duration_ns"],
            "correlation_id": {"internal": entry["args"].get("correlation", 0), "external": 0},
        }
        if entry["cat"] == "kernel":
            self._add_kernel(row, entry)
        elif entry["cat"] == "gpu_memcpy":
            self._add_copy(row, entry)
        else:
            self._add_call(row, entry)

    def _add_kernel(self, row: dict[str, Any], entry: Record) -> None:
        args = entry["args"]
        axes = dict(zip("xyz", args["block"], strict=True))
        dispatch = {
            "agent_id": {"handle": 900 + args["device"]},
            "queue_id": {"handle": 1},
            "kernel_id": self._symbols.setdefault(entry["name"], len(self._symbols)),
            "group_segment_size": args["shared memory"],
            "workgroup_size": axes,
            "grid_size": {
                axis: args["grid"][place] * axes[axis] for place, axis in enumerate("xyz")
            },
        }
        row |= {"dispatch_info": dispatch, "stream_id": {"handle": args["stream"]}}
        self._buffers["kernel_dispatch"].append(row)

    def _add_copy(self, row: dict[str, Any], entry: Record) -> None:
        args = entry["args"]
        row |= {"dst_agent_id": {"handle": 900 + args["device"]}, "bytes": args["bytes"]}
        row |= {"stream_id": {"handle": args["stream"]}}
        row |= self._operation("MEMORY_COPY", f"MEMORY_COPY_{direction(entry)}")
        self._buffers["memory_copy"].append(row)

    def _add_call(self, row: dict[str, Any], entry: Record) -> None:
        _, kind, buffer = next(one for one in _INTERFACES if one[0] == entry["cat"])
        name = entry["name"]
        if buffer == "marker_api":
            key = 1_000_000 + len(self._markers)
            row["correlation_id"]["internal"] = key
            self._markers.append({"key": key, "value": name})
            name = "roctxRangePushA"
        row |= self._operation(kind, name)
        self._buffers[buffer].append(row)

    def _operation(self, kind: str, name: str) -> dict[str, int]:
        of_kind = self._operations[kind]
        return {"kind": _KINDS.index(kind), "operation": of_kind.setdefault(name, len(of_kind))}

    def records(self) -> dict[str, Any]:
        """Return the buffers with the names of operations, markers and kernels."""
        return {
            "strings": {
                "buffer_records": [
                    {"kind": kind, "operations": list(self._operations[kind])} for kind in _KINDS
                ],
                "marker_api": self._markers,
            },
            "kernel_symbols": [
                {
                    "kernel_id": number,
                    "kernel_name": name,
                    "formatted_kernel_name": name,
                    "arch_vgpr_count": VECTOR_REGISTERS,
                    "accum_vgpr_count": ACCUMULATION_REGISTERS,
                }
                for name, number in self._symbols.items()
            ],
            "buffer_records": self._buffers,
        }


def written(run: Run) -> Iterator[Record]:
    """Yield what rocprofv3 records of a run."""
    categories = {"kernel", "gpu_memcpy", *(category for category, _, _ in _INTERFACES)}
    for entry in run.events:
        if entry["ph"] == "X" and entry.get("cat") == "gpu_memset":
            yield _as_fill_kernel(entry)
        elif entry["ph"] == "X" and entry.get("cat") in categories:
            yield entry


def _as_fill_kernel(entry: Record) -> Record:
    """Return a memset as HIP performs and rocprofv3 records it: as a kernel of the runtime."""
    blocks = -(-entry["args"]["bytes"] // (16 * _FILL_BLOCK))
    launch = {"grid": [blocks, 1, 1], "block": [_FILL_BLOCK, 1, 1], "shared memory": 0}
    args = {**entry["args"], **launch}
    return {**entry, "cat": "kernel", "name": FILL_KERNEL, "args": args}


def direction(entry: Record) -> str:
    """Return the direction of a copy."""
    return _DIRECTIONS[entry["name"].split()[1]]
