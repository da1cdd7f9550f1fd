"""Writes a run as Nsight Systems exports it to SQLite: the same records, in tables.

The export has no arrows, no external ids, no Python functions and no labels over streams. Ranges
of operators have the text that `torch.autograd.profiler.emit_nvtx` gives them. As in real exports,
records of synchronisation always name device 0.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from .facts import device_properties, facts_of

if TYPE_CHECKING:
    from pathlib import Path

    from .kineto import Record
    from .run import Run

_TABLES: Final = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
    "ThreadNames": "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, systemClockNs INTEGER",
    "TARGET_INFO_GPU": "vmId INTEGER, id INTEGER, name TEXT, totalMemory INTEGER,"
    " smCount INTEGER, threadsPerWarp INTEGER, cuDevice INTEGER",
    "META_DATA_EXPORT": "name TEXT NOT NULL, value TEXT",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INTEGER NOT NULL, end INTEGER NOT NULL,"
    " deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,"
    " correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,"
    " shortName INTEGER NOT NULL, registersPerThread INTEGER, gridX INTEGER, gridY INTEGER,"
    " gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER,"
    " dynamicSharedMemory INTEGER, graphNodeId INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start INTEGER NOT NULL, end INTEGER NOT NULL,"
    " deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,"
    " correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL,"
    " srcKind INTEGER, dstKind INTEGER, graphNodeId INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMSET": "start INTEGER NOT NULL, end INTEGER NOT NULL,"
    " deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,"
    " correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, memKind INTEGER,"
    " graphNodeId INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER NOT NULL, end INTEGER NOT NULL,"
    " eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER,"
    " nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "start INTEGER NOT NULL, end INTEGER NOT NULL,"
    " deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,"
    " correlationId INTEGER, globalPid INTEGER, syncType INTEGER NOT NULL,"
    " eventId INTEGER NOT NULL, eventSyncId INTEGER",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": "timestamp INTEGER, deviceId INTEGER NOT NULL,"
    " contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER,"
    " globalPid INTEGER, eventId INTEGER NOT NULL, eventSyncId INTEGER",
    "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT,"
    " globalTid INTEGER, textId INTEGER, domainId INTEGER",
}
_COPY: Final = re.compile(r"Memcpy (\w+) \((.+) -> (.+)\)")
_DIRECTIONS: Final = (
    "",
    "HtoD",
    "DtoH",
    "HtoA",
    "AtoH",
    "AtoA",
    "AtoD",
    "DtoA",
    "DtoD",
    "HtoH",
    "PtoP",
)
_MEMORY: Final = ("Pageable", "Pinned", "Device", "Array", "Managed")
_SYNCS: Final = ("", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync")
_NONE: Final = 0xFFFF_FFFF
_PUSH_POP: Final = 59
_MACHINE: Final = 1 << 48


def write_nsight(run: Run, path: str | Path, *, sync_records: bool = True) -> None:
    """Write the records of a run as an export; the file must not exist."""
    with closing(sqlite3.connect(path)) as database:
        writer = _Writer(database)
        for entry in run.events:
            writer.write(entry, sync_records=sync_records)
        writer.write_facts(run)
        database.commit()


class _Writer:
    """The numbers that were given out so far."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._texts: dict[str, int] = {}
        self._sync_ids = count(1)
        self._host = 0
        for name, columns in _TABLES.items():
            database.execute(f"CREATE TABLE {name} ({columns})")

    def write(self, entry: Record, *, sync_records: bool) -> None:
        """Write what the export has of a record."""
        match entry["ph"], entry.get("cat"):
            case "X", "kernel":
                self._kernel(entry)
            case "X", "gpu_memcpy":
                self._copy(entry)
            case "X", "gpu_memset":
                values = {"bytes": entry["args"]["bytes"], "memKind": 2}
                self._activity("MEMSET", entry, values)
            case "X", "cuda_runtime" | "cuda_driver":
                self._call(entry)
            case "X", "cuda_sync" if sync_records:
                self._sync(entry)
            case "X", "cpu_op" | "user_annotation":
                self._range(entry)
            case "M", _ if entry["name"] in {"process_name", "thread_name"}:
                self._name(entry)

    def write_facts(self, run: Run) -> None:
        """Write what the export says about itself."""
        facts = facts_of(run.program, shapes=run.shapes)
        self._insert("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs": facts.base_ns})
        for device in device_properties(facts.n_devices):
            row = {"id": device["id"], "cuDevice": device["id"], "name": device["name"]}
            row |= {"totalMemory": device["totalGlobalMem"], "smCount": device["numSms"]}
            self._insert("TARGET_INFO_GPU", row | {"threadsPerWarp": device["warpSize"]})
        self._insert("META_DATA_EXPORT", {"name": "EXPORT_SCHEMA_VERSION", "value": "3.25.0"})

    def _insert(self, table: str, row: dict[str, Any]) -> None:
        marks = ", ".join("?" * len(row))
        self._database.execute(
            f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})",  # noqa: S608 - names of this file
            tuple(row.values()),
        )

    def _text(self, text: str) -> int:
        number = self._texts.get(text)
        if number is None:
            number = self._texts[text] = len(self._texts) + 1
            self._insert("StringIds", {"id": number, "value": text})
        return number

    def _activity(self, table: str, entry: Record, values: dict[str, Any]) -> None:
        args = entry["args"]
        stream = _NONE if args["stream"] < 0 else args["stream"]
        row = _times(entry) | {
            "deviceId": args["device"],
            "contextId": 1 + args["device"],
            "streamId": stream,
            "correlationId": args["correlation"],
            "globalPid": self._host,
        }
        self._insert(f"CUPTI_ACTIVITY_KIND_{table}", row | values)

    def _kernel(self, entry: Record) -> None:
        args, name = entry["args"], self._text(entry["name"])
        row = {"demangledName": name, "shortName": name}
        row |= {"registersPerThread": args.get("registers per thread")}
        row |= dict(zip(("gridX", "gridY", "gridZ"), args.get("grid", ()), strict=False))
        row |= dict(zip(("blockX", "blockY", "blockZ"), args.get("block", ()), strict=False))
        row |= {"staticSharedMemory": 0, "dynamicSharedMemory": args.get("shared memory")}
        self._activity("KERNEL", entry, row | {"graphNodeId": args.get("graph node id")})

    def _copy(self, entry: Record) -> None:
        found = _COPY.fullmatch(entry["name"])
        if found is None:
            message = f"no name of a copy: {entry['name']}"
            raise ValueError(message)
        direction, source, target = found.groups()
        row = {"bytes": entry["args"]["bytes"], "copyKind": _DIRECTIONS.index(direction)}
        row |= {"srcKind": _MEMORY.index(source), "dstKind": _MEMORY.index(target)}
        self._activity("MEMCPY", entry, row)

    def _call(self, entry: Record) -> None:
        is_driver = entry["cat"] == "cuda_driver"
        name = entry["name"] if is_driver else f"{entry['name']}_v11060"
        row = _times(entry) | {"eventClass": int(is_driver), "globalTid": _global(entry)}
        row |= {"correlationId": entry["args"]["correlation"], "nameId": self._text(name)}
        self._insert("CUPTI_ACTIVITY_KIND_RUNTIME", row | {"returnValue": 0})

    def _sync(self, entry: Record) -> None:
        args = entry["args"]
        kind = _SYNCS.index(args["cuda_sync_kind"])
        row: dict[str, Any] = {"syncType": kind, "eventId": _NONE, "eventSyncId": _NONE}
        if "wait_on_cuda_event_id" in args:
            row |= {"eventId": args["wait_on_cuda_event_id"], "eventSyncId": next(self._sync_ids)}
            recorded = {
                "timestamp": 0,
                "deviceId": args["device"],
                "contextId": 1 + args["device"],
                "streamId": args["wait_on_stream"],
                "correlationId": args["wait_on_cuda_event_record_corr_id"],
                "globalPid": self._host,
                "eventId": row["eventId"],
                "eventSyncId": row["eventSyncId"],
            }
            self._insert("CUPTI_ACTIVITY_KIND_CUDA_EVENT", recorded)
        self._activity("SYNCHRONIZATION", entry, row | {"deviceId": 0})

    def _range(self, entry: Record) -> None:
        text, args = entry["name"], entry["args"]
        if entry["cat"] == "cpu_op":
            if "Sequence number" in args:
                text += f", seq = {args['Sequence number']}"
            text += f", op_id = {args['Record function id']}"
            if "Input Dims" in args:
                text += f", sizes = {args['Input Dims']}"
        row = _times(entry) | {"eventType": _PUSH_POP, "domainId": 0}
        self._insert("NVTX_EVENTS", row | {"globalTid": _global(entry), "text": text})

    def _name(self, entry: Record) -> None:
        if entry["args"]["name"].startswith("stream") or not isinstance(entry["pid"], int):
            return
        if entry["name"] == "thread_name":
            name = self._text(entry["args"]["name"])
            self._insert("ThreadNames", {"nameId": name, "globalTid": _global(entry)})
        elif not self._host:
            self._host = _MACHINE | entry["pid"] << 24
            row = {"globalPid": self._host, "pid": entry["pid"], "name": entry["args"]["name"]}
            self._insert("PROCESSES", row)


def _times(entry: Record) -> dict[str, Any]:
    return {"start": entry["start_ns"], "end": entry["start_ns"] + entry["duration_ns"]}


def _global(entry: Record) -> int:
    return _MACHINE | int(entry["pid"]) << 24 | int(entry["tid"])
