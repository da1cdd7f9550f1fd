"""Small Ascend profiles, written as torch_npu writes them: timelines, databases and text files."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any, Final, Self

from longpole.formats.read import read_trace

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.trace.trace import Trace

PROGRAM = 4000
BASE_US = 1_736_408_883_000_000
MAIN, LAUNCHER = 4000, 4001
_PLACES = {"Ascend Hardware": 13, "HCCL": 15, "CANN": 7, "Overlap Analysis": 23}


def process(layer: str, device: int = 0) -> int:
    """Return the process id of a layer, which holds the program, the place and the device."""
    return PROGRAM << 10 | _PLACES[layer] << 5 | device


class AscendBuilder:
    """A timeline that grows by calls; times are microseconds from a base."""

    def __init__(self, device: int = 0) -> None:
        self._device = device
        self._events: list[dict[str, Any]] = []
        self._metadata: list[dict[str, Any]] = []
        self._name("process_name", PROGRAM, 0, "Python")
        for layer, place in _PLACES.items():
            number = process(layer, device)
            self._name("process_name", number, 0, layer)
            index = {"ph": "M", "name": "process_sort_index", "pid": number, "tid": 0}
            self._metadata.append(index | {"args": {"sort_index": place}})

    def _name(self, statement: str, pid: int, tid: int, value: str) -> None:
        event = {"ph": "M", "name": statement, "pid": pid, "tid": tid, "args": {"name": value}}
        if event not in self._metadata:
            self._metadata.append(event)

    def _add(
        self,
        name: str,
        track: tuple[int, int],
        span: tuple[float, float],
        args: dict[str, Any] | None = None,
        cat: str | None = None,
    ) -> Self:
        start_ns, end_ns = (round(time * 1000) for time in span)
        stamp = BASE_US * 1000 + start_ns
        event: dict[str, Any] = {"ph": "X", "name": name, "pid": track[0], "tid": track[1]}
        event |= {"ts": f"{stamp // 1000}.{stamp % 1000:03d}", "dur": (end_ns - start_ns) / 1000}
        self._events.append(event | ({} if cat is None else {"cat": cat}) | {"args": args or {}})
        return self

    def step(self, number: int, span: tuple[float, float]) -> Self:
        """Add a step, which torch_npu lists among the operators."""
        return self.operator(f"ProfilerStep#{number}", span)

    def operator(self, name: str, span: tuple[float, float], thread: int = MAIN) -> Self:
        """Add an operator."""
        return self._add(name, (PROGRAM, thread), span, cat="cpu_op")

    def queue(self, number: int, put: tuple[float, float], take: tuple[float, float]) -> Self:
        """Hand a launch from the main thread to the launching thread."""
        args = {"correlation_id": number}
        self._add("Enqueue", (PROGRAM, MAIN), put, args, "enqueue")
        return self._add("Dequeue@op", (PROGRAM, LAUNCHER), take, args, "dequeue")

    def call(
        self, name: str, span: tuple[float, float], connection: int, thread: int = MAIN
    ) -> Self:
        """Add a call into CANN."""
        track = (process("CANN", self._device), thread)
        self._name("thread_name", *track, f"Thread {thread}")
        return self._add(name, track, span, {"connection_id": connection})

    def task(
        self,
        name: str,
        span: tuple[float, float],
        connection: int,
        *,
        stream: int = 2,
        kind: str = "AI_CORE",
    ) -> Self:
        """Add a task on a stream."""
        track = (process("Ascend Hardware", self._device), stream)
        self._name("thread_name", *track, f"Stream {stream}")
        return self._add(name, track, span, {"Task Type": kind, "connection_id": connection})

    def launch(
        self, name: str, call: tuple[float, float], work: tuple[float, float], connection: int
    ) -> Self:
        """Add a call on the main thread and the kernel that it launches."""
        return self.call("Node@launch", call, connection).task(name, work, connection)

    def collective(
        self, name: str, span: tuple[float, float], connection: int, **args: Any
    ) -> Self:
        """Add a collective."""
        track = (process("HCCL", self._device), 0)
        self._name("thread_name", *track, "Group 0 Communication")
        return self._add(name, track, span, {"connection_id": connection, **args})

    def part(
        self,
        name: str,
        span: tuple[float, float],
        connection: int,
        peer: int,
        **more: Any,
    ) -> Self:
        """Add a task of a collective, as its plane and its stream show it."""
        track = (process("HCCL", self._device), 1 + peer)
        self._name("thread_name", *track, f"Plane {peer}")
        kinds = {"Notify_Wait": "Notify Wait", "Memcpy": "SDMA", "Notify_Record": "Write Value"}
        args = {"stream id": 4, "task type": name, "src rank": 0, "dst rank": peer}
        self._add(name, track, span, args | more)
        return self.task(kinds[name], span, connection, stream=4, kind=kinds[name])

    def overlap_track(self, name: str, span: tuple[float, float], thread: int) -> Self:
        """Add an interval that the profiler computed."""
        return self._add(name, (process("Overlap Analysis", self._device), thread), span)

    def to_text(self, *, metadata_last: bool = False) -> str:
        """Return the file."""
        parts = [self._metadata, self._events]
        return json.dumps(
            [event for part in parts[:: -1 if metadata_last else 1] for event in part]
        )

    def write(self, path: Path) -> Path:
        """Write the file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.to_text())
        return path

    def read(self, **options: Any) -> Trace:
        """Read the timeline."""
        return read_trace(self.to_text().encode(), **options)


def late_peer() -> AscendBuilder:
    """Return a step that waits in a collective for rank 5, which arrives last."""
    return (
        AscendBuilder()
        .step(7, (0, 1000))
        .operator("aten::mm", (10, 60))
        .launch("MatMul", (20, 30), (40, 90), 1)
        .call("Node@launch", (100, 110), 2)
        .collective("hcom_allReduce__586_0_1", (120, 920), 2, count=1024, data_type="FP32")
        .part("Memcpy", (120, 130), 2, 1)
        .part("Notify_Wait", (130, 150), 2, 1)
        .part("Notify_Wait", (130, 900), 2, 5)
        .part("Memcpy", (900, 920), 2, 5)
        .call("AscendCL@aclrtSynchronizeStream", (200, 930), 3)
    )


_TABLES: Final = {
    "STRING_IDS": "id INTEGER, value TEXT",
    "ENUM_API_TYPE": "id INTEGER, name TEXT",
    "ENUM_HCCL_DATA_TYPE": "id INTEGER, name TEXT",
    "PYTORCH_API": "startNs TEXT, endNs TEXT, globalTid INTEGER, name INTEGER, type INTEGER",
    "CANN_API": "startNs INTEGER, endNs INTEGER, globalTid INTEGER, name INTEGER, type INTEGER, "
    "connectionId INTEGER",
    "TASK": "startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, "
    "globalTaskId INTEGER, globalPid INTEGER, taskType INTEGER, streamId INTEGER, taskId INTEGER",
    "COMPUTE_TASK_INFO": "globalTaskId INTEGER, name INTEGER, taskType INTEGER, blockNum INTEGER",
    "COMMUNICATION_TASK_INFO": "globalTaskId INTEGER, taskType INTEGER, planeId INTEGER, "
    "srcRank INTEGER, dstRank INTEGER",
    "COMMUNICATION_OP": "opName INTEGER, startNs INTEGER, endNs INTEGER, connectionId INTEGER, "
    "groupName INTEGER, dataType INTEGER, count INTEGER",
}
_TEXTS: Final = (
    *("MatMul", "AI_CORE", "MEMCPY_ASYNC", "hcom_allReduce__9_0_1", "Notify_Wait", "Notify Wait"),
    *("launch", "aten::mm", "ProfilerStep#3", "KERNEL_AICORE", "group-9"),
)


def write_database(path: Path, *, without: tuple[str, ...] = ()) -> Path:
    """Write a database with a kernel, a copy, a collective and its parts on device 1."""
    rows = _database_rows({text: place for place, text in enumerate(_TEXTS)})
    connection = sqlite3.connect(path)
    for table, columns in _TABLES.items():
        if table not in without:
            connection.execute(f"CREATE TABLE {table} ({columns})")
            marks = ", ".join("?" for _ in columns.split(","))
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows[table])  # noqa: S608 - own names
    connection.commit()
    connection.close()
    return path


def _database_rows(number: dict[str, int]) -> dict[str, list[tuple[Any, ...]]]:
    thread = PROGRAM << 32 | MAIN
    base = BASE_US * 1000
    all_reduce = number["hcom_allReduce__9_0_1"], number["group-9"]
    return {
        "STRING_IDS": list(enumerate(_TEXTS)),
        "ENUM_API_TYPE": [(10000, "node"), (50001, "op")],
        "ENUM_HCCL_DATA_TYPE": [(4, "FP32")],
        "PYTORCH_API": [
            (str(base), str(base + 900_000), thread, number["ProfilerStep#3"], 50001),
            (str(base + 10), str(base + 9_000), thread, number["aten::mm"], 50001),
        ],
        "CANN_API": [
            (base + 1_001, base + 2_002, thread, number["launch"], 10000, 1),
            (base + 12_000, base + 13_000, thread, number["launch"], 10000, 2),
        ],
        "TASK": [
            (base + 3_003, base + 8_008, 1, 1, 11, PROGRAM, number["KERNEL_AICORE"], 2, 1),
            (base + 3_000, base + 9_000, 1, 1, 12, PROGRAM, number["AI_CORE"], 2, 1),
            (base + 9_100, base + 9_200, 1, 1, 13, PROGRAM, number["MEMCPY_ASYNC"], 2, 2),
            (base + 20_000, base + 90_000, 1, 2, 14, PROGRAM, number["Notify Wait"], 4, 3),
        ],
        "COMPUTE_TASK_INFO": [(11, number["MatMul"], number["AI_CORE"], 8)],
        "COMMUNICATION_TASK_INFO": [(14, number["Notify_Wait"], 1, 0, 3)],
        "COMMUNICATION_OP": [
            (all_reduce[0], base + 19_000, base + 99_000, 2, all_reduce[1], 4, 64)
        ],
    }
