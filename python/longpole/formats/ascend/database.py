"""Reads a database of the Ascend profilers as the timeline of their text export.

`ascend_pytorch_profiler_*.db`, `ascend_mindspore_profiler_*.db` and `msprof_*.db` contain the
events of `trace_view.json` in tables. They are passed to the timeline reader in chunks, so that one
reader interprets the events of both forms and memory use stays small. Times remain integers in
nanoseconds.

Columns are found by name, since the published schema and real files differ. If a table or column is
missing, only its data is.
"""

from __future__ import annotations

import json
import re
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from longpole.formats.ascend.rows import Database, PieceFile, open_database

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

_DAMAGED: Final = "damaged"
"""Invalid JSON, so that the reader counts the value as damaged."""
DAMAGED_ROW: Final = '"a row of the database is damaged"'
"""Replaces a missing row with a string, which the reader counts as a lost event."""
_PLACES: Final = {"CANN": 7, "Ascend Hardware": 13, "HCCL": 15, "Counters": 17}


def process_number(layer: str, program: int, device: int = 0) -> int:
    """Return the process id of the program or of one of its layers, as msprof writes it."""
    place = _PLACES.get(layer)
    return program if place is None else program << 10 | place << 5 | device


class Tracks:
    """Writes the names of processes (one per layer) and threads when they first occur."""

    def __init__(self) -> None:
        self._named: set[tuple[int, int | None]] = set()

    def named(
        self, layer: str, place: tuple[int, int], thread: int | None = None, name: str = ""
    ) -> Iterator[str]:
        """Yield the names of the process of a program and device, and of a thread."""
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
    """Return an event with the times of a row, on a track (process, thread).

    Damaged values become invalid JSON, which the reader skips and counts.
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
    """Return a counter sample without a time, which the reader skips and counts."""
    return f'{flat({"ph": "C", "name": name})[:-1]},"ts":{_DAMAGED}}}'


def microseconds(ns: int) -> str:
    """Format nanoseconds as decimal microseconds, exactly."""
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{ns // 1000}.{ns % 1000:03d}"


def flat(value: dict[str, Any]) -> str:
    """Format JSON without spaces, which is read fastest."""
    return json.dumps(value, separators=(",", ":"))


_LAYERS: Final = {
    "acl": "AscendCL",
    "node": "Node",
    "model": "Model",
    "hccl": "Hccl",
    "communication": "Hccl",
    "runtime": "Runtime",
}
_FRAMEWORK_TABLES: Final = ("PYTORCH_API", "FRAMEWORK_API", "MINDSPORE_API")
_MAY_COMPUTE: Final = re.compile(r"KERNEL_\w+|AI_\w+|MIX_\w+|FFTS_PLUS|STARS_COMMON")
_FRAME: Final = "FFTS_PLUS"
_COUNTERS: Final = (
    ("AICORE_FREQ", "AI Core Freq", "freq", "MHz"),
    ("NPU_MEM", "NPU memory (HBM)", "hbm", "bytes"),
    ("HBM", "HBM bandwidth", "bandwidth", "bytes/s"),
    ("LLC", "LLC throughput", "throughput", "bytes/s"),
)


def database_timeline(path: str | os.PathLike[str]) -> PieceFile:
    """Return the timeline of a database as a file whose contents are generated while it is read.

    Raises
    ------
    TraceError
        The file is not such a database.
    """
    return PieceFile(_document(open_database(path)))


def _document(database: Database) -> Iterator[bytes]:
    events = chain(
        _framework(database),
        _cann(database),
        _tasks(database),
        _collectives(database),
        _counters(database),
    )
    yield b"["
    separator = "\n"
    with closing(database):
        for text in events:
            yield f"{separator}{text}".encode()
            separator = ",\n"
        for _ in range(database.n_lost_rows):
            yield f"{separator}{DAMAGED_ROW}".encode()
            separator = ",\n"
    yield b"\n]\n"


def _framework(database: Database) -> Iterator[str]:
    """Yield the operators, Python functions and queue events of the program."""
    table = next((name for name in _FRAMEWORK_TABLES if database.has(name)), None)
    if table is None:
        return
    framework = "MindSpore" if table == "MINDSPORE_API" else "Python"
    connections = database.connections()
    tracks = Tracks()
    wanted = ("startNs", "endNs", "globalTid", "name", "type", "connectionId", "sequenceNumber")
    shapes = ("fwdThreadId", "inputShapes", "inputDtypes")
    for row in database.rows(table, (*wanted, *shapes)):
        program, thread = _track(row["globalTid"])
        name = database.text(row["name"])
        yield from tracks.named(framework, (program, 0))
        category = _category(database.enumerated("ENUM_API_TYPE", row["type"]), name)
        args = {"Sequence number": row["sequenceNumber"], "Fwd thread id": row["fwdThreadId"]}
        if category in {"enqueue", "dequeue"}:
            args = {"correlation_id": next(iter(connections.get(row["connectionId"], ())), None)}
        elif category == "cpu_op":
            args["Input Dims"] = database.text_or_none(row["inputShapes"])
            args["Input type"] = database.text_or_none(row["inputDtypes"])
        yield event(name, (program, thread), row, args, category)


def _category(kind: str | None, name: str) -> str:
    if kind == "queue":
        return "enqueue" if name.startswith("Enqueue") else "dequeue"
    return {"trace": "python_function", "mstx": "user_annotation"}.get(kind or "", "cpu_op")


def _cann(database: Database) -> Iterator[str]:
    """Yield the CANN calls."""
    tracks = Tracks()
    for row in database.rows(
        "CANN_API", ("startNs", "endNs", "globalTid", "name", "type", "connectionId")
    ):
        program, thread = _track(row["globalTid"])
        yield from tracks.named("CANN", (program, 0))
        layer = _LAYERS.get(database.enumerated("ENUM_API_TYPE", row["type"]) or "", "AscendCL")
        name = f"{layer}@{database.text(row['name'])}"
        track = (process_number("CANN", program), thread)
        yield event(name, track, row, {"connection_id": row["connectionId"]})


def _tasks(database: Database) -> Iterator[str]:
    """Yield the tasks on streams: computing tasks, those of collectives, and all others."""
    computing = database.by_task("COMPUTE_TASK_INFO", ("name", "taskType"))
    parts = database.by_task(
        "COMMUNICATION_TASK_INFO",
        ("taskType", "planeId", "srcRank", "dstRank", "size", "linkType", "transportType"),
    )
    tracks = Tracks()
    columns = ("startNs", "endNs", "deviceId", "connectionId", "globalTaskId", "globalPid")
    for row in database.rows("TASK", (*columns, "taskType", "streamId", "taskId")):
        place = (row["globalPid"] or 0, row["deviceId"] or 0)
        task, stream = row["globalTaskId"], row["streamId"]
        part = parts.get(task)
        infos = [info for info in (computing.get(task), part) if info is not None]
        row["n_damaged"] += sum(info["n_damaged"] for info in infos)
        name, kind = _named(computing, row, database)
        yield from tracks.named("Ascend Hardware", place, stream, f"Stream {stream}")
        args = {
            "Task Type": kind,
            "Task Id": row["taskId"],
            "connection_id": row["connectionId"],
        }
        track = (process_number("Ascend Hardware", *place), stream)
        yield event(name, track, row, args)
        if part is not None:
            plane = 1000 + (part["planeId"] or 0)
            yield from tracks.named("HCCL", place, plane, f"Plane {part['planeId']}")
            yield _part(part, row, (process_number("HCCL", *place), plane), database)


def _named(
    computing: dict[Any, dict[str, Any]], row: dict[str, Any], database: Database
) -> tuple[str, str]:
    """Return the name and the type of a task.

    Of the tasks that can compute, only those in the table of computing tasks do. The others enclose
    the tasks of a collective, or of a kernel that uses both kinds of cores.
    """
    task = computing.get(row["globalTaskId"])
    kind = database.text(row["taskType"])
    if task is not None:
        return database.text(task["name"]), database.text_or_none(task["taskType"]) or kind
    is_frame = bool(computing) and bool(_MAY_COMPUTE.fullmatch(kind))
    return kind, _FRAME if is_frame else kind


def _part(
    part: dict[str, Any], row: dict[str, Any], track: tuple[int, int], database: Database
) -> str:
    name = database.text(part["taskType"])
    args = {
        "stream id": row["streamId"],
        "task type": name,
        "src rank": part["srcRank"],
        "dst rank": part["dstRank"],
        "size(Byte)": part["size"],
        "link type": database.enumerated("ENUM_HCCL_LINK_TYPE", part["linkType"]),
        "transport type": database.enumerated("ENUM_HCCL_TRANSPORT_TYPE", part["transportType"]),
    }
    return event(name, track, row, args)


def _collectives(database: Database) -> Iterator[str]:
    """Yield the collectives, on the program and device of their tasks."""
    program, device = database.program_and_device()
    groups: dict[Any, int] = {}
    tracks = Tracks()
    columns = ("opName", "startNs", "endNs", "connectionId", "groupName", "dataType", "algType")
    for row in database.rows("COMMUNICATION_OP", (*columns, "count", "deviceId")):
        group = groups.setdefault(row["groupName"], len(groups))
        place = (program, device if row["deviceId"] is None else row["deviceId"])
        yield from tracks.named("HCCL", place, group, f"Group {group} Communication")
        args = {
            "connection_id": row["connectionId"],
            "Process Group Name": database.text_or_none(row["groupName"]),
            "data_type": database.enumerated("ENUM_HCCL_DATA_TYPE", row["dataType"]),
            "alg_type": database.text_or_none(row["algType"]),
            "count": row["count"],
        }
        track = (process_number("HCCL", *place), group)
        yield event(database.text(row["opName"]), track, row, args)


def _counters(database: Database) -> Iterator[str]:
    program, _ = database.program_and_device()
    for table, name, column, unit in _COUNTERS:
        for row in database.rows(
            table, ("timestampNs", column, "deviceId", "type", "hbmId", "llcId")
        ):
            if row["n_damaged"]:
                yield damaged_sample(name)
            if row["timestampNs"] is None or row[column] is None:
                continue
            number = process_number("Counters", program, row["deviceId"] or 0)
            place = next((row[key] for key in ("hbmId", "llcId") if row[key] is not None), None)
            kind = database.text_or_none(row["type"])
            label = " ".join(str(part) for part in (name, place, kind) if part is not None)
            head = flat({"ph": "C", "name": label, "pid": number, "tid": 0})[:-1]
            value = flat({unit: row[column]})
            yield f'{head},"ts":{microseconds(row["timestampNs"])},"args":{value}}}'


def _track(global_thread: int | None) -> tuple[int, int]:
    """Split a number into the process id and the thread id it contains."""
    number = global_thread or 0
    return number >> 32, number & 0xFFFFFFFF
