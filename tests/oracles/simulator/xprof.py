"""Turns the records of a run into what XProf would have written: trace viewer JSON and xplane.pb.

XProf has no categories, no records of synchronisation and no arrows. It draws steps, modules and
operators of a device as lines of their own; they are written too, for a reader must not count them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .perfetto import message, number, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .kineto import Record

_HOST = "/host:CPU"
_HOST_PID = 701
_STEP = "ProfilerStep#"
_COPIES = {"HtoD": "MemcpyH2D", "DtoH": "MemcpyD2H", "DtoD": "MemcpyD2D", "PtoP": "MemcpyP2P"}
ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
ON_HOST = ("cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver")
_REPEATED = {1_000_000: "Steps", 1_000_001: "XLA Modules", 1_000_002: "XLA Ops"}


@dataclass(frozen=True, slots=True)
class _Event:
    name: str
    start_ns: int
    duration_ns: int
    args: Mapping[str, Any]


@dataclass(slots=True)
class _Plane:
    pid: int
    name: str
    lines: dict[int, str] = field(default_factory=dict)
    events: dict[int, list[_Event]] = field(default_factory=dict)

    def add(self, tid: int, line: str, event: _Event) -> None:
        self.lines.setdefault(tid, line)
        self.events.setdefault(tid, []).append(event)


def trace_viewer(records: Iterable[Record], *, repeated: bool = True) -> bytes:
    """Write `*.trace.json`: all values of arguments are texts, the last event is empty.

    The lines that repeat the work of a device may be left out.
    """
    events: list[dict[str, Any]] = []
    for plane in _planes(records, repeated=repeated):
        events.append(_meta("process_name", plane.pid, None, plane.name))
        events += [_meta("thread_name", plane.pid, tid, line) for tid, line in plane.lines.items()]
        events += [
            {
                "ph": "X",
                "pid": plane.pid,
                "tid": tid,
                "ts": _microseconds(event.start_ns),
                "dur": _microseconds(event.duration_ns),
                "name": event.name,
                "args": {key: str(value) for key, value in event.args.items()},
            }
            for tid, of_line in plane.events.items()
            for event in of_line
        ]
    document = {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": events}
    return json.dumps(document, separators=(",", ":")).replace('"@', "").replace('@"', "").encode()


def xplane(records: Iterable[Record]) -> bytes:
    """Write an `XSpace`: names of events and values follow the events of a plane."""
    return b"".join(message(1, _plane(plane)) for plane in _planes(records)) + text(4, "simulated")


def _plane(plane: _Plane) -> bytes:
    names: dict[str, int] = {}
    keys: dict[str, int] = {}
    lines = [
        message(3, _line(tid, line, plane.events.get(tid, []), names, keys))
        for tid, line in plane.lines.items()
    ]
    metadata = [
        message(4, number(1, row), message(2, number(1, row), text(2, name)))
        for name, row in names.items()
    ]
    values = [
        message(5, number(1, row), message(2, number(1, row), text(2, key)))
        for key, row in keys.items()
    ]
    return b"".join([number(1, plane.pid), text(2, plane.name), *lines, *metadata, *values])


def _line(
    tid: int, name: str, events: list[_Event], names: dict[str, int], keys: dict[str, int]
) -> bytes:
    base_ns = min((event.start_ns for event in events), default=0)
    written = [
        message(
            4,
            number(1, names.setdefault(event.name, len(names) + 1)),
            number(2, (event.start_ns - base_ns) * 1_000),
            number(3, event.duration_ns * 1_000),
            *(
                message(4, _value(keys.setdefault(key, len(keys) + 1), value))
                for key, value in event.args.items()
            ),
        )
        for event in events
    ]
    return b"".join([number(1, tid), text(2, name), number(3, base_ns), *written])


def _value(key: int, value: object) -> bytes:
    written = number(4, value) if isinstance(value, int) else text(5, str(value))
    return number(1, key) + written


def _planes(records: Iterable[Record], *, repeated: bool = True) -> list[_Plane]:
    host = _Plane(_HOST_PID, _HOST)
    devices: dict[int, _Plane] = {}
    for entry in records:
        category = entry.get("cat", "")
        if category in ON_HOST:
            tid = int(entry["tid"])
            host.add(tid, f"python/{tid}", _host_event(entry))
        elif category in ON_DEVICE:
            device = int(entry["pid"])
            plane = devices.setdefault(device, _Plane(device + 1, f"/device:GPU:{device}"))
            stream = int(entry["tid"])
            event = _device_event(entry)
            plane.add(stream, f"Stream #{stream}(Compute,MemcpyH2D)", event)
            for tid, line in _REPEATED.items() if repeated else ():
                plane.add(tid, line, event)
    return [*devices.values(), host]


def _host_event(entry: Record) -> _Event:
    name, args = entry["name"], dict[str, Any]()
    if name.startswith(_STEP):
        name, args = "train", {"step_num": int(name.removeprefix(_STEP)), "_r": 1}
    elif entry["cat"] == "python_function":
        name = f"${name}"
    elif entry["cat"] in {"cuda_runtime", "cuda_driver"}:
        args = {"correlation_id": entry["args"]["correlation"], "device_id": 0}
    return _Event(name, entry["start_ns"], entry["duration_ns"], args)


def _device_event(entry: Record) -> _Event:
    given = entry["args"]
    args: dict[str, Any] = {"correlation_id": given["correlation"], "context_id": "$$1"}
    name = entry["name"]
    if entry["cat"] == "gpu_memcpy":
        source, target = name.partition("(")[2].rstrip(")").lower().split(" -> ")
        name = next(named for direction, named in _COPIES.items() if direction in name)
        args["memcpy_details"] = (
            f"kind_src:{source} kind_dst:{target} size:{given['bytes']} dest:0 async:1"
        )
    elif entry["cat"] == "gpu_memset":
        name = "Memset"
        args["Memset_details"] = f"kind:device size:{given['bytes']} async:1"
    else:
        grid, block = (",".join(map(str, given[key])) for key in ("grid", "block"))
        args["kernel_details"] = (
            f"regs:{given['registers per thread']} static_shared:{given['shared memory']}"
            f" dynamic_shared:0 grid:{grid} block:{block} occ_pct:50"
        )
    return _Event(name, entry["start_ns"], entry["duration_ns"], args)


def _meta(what: str, pid: int, tid: int | None, value: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"ph": "M", "pid": pid, "name": what, "args": {"name": value}}
    return entry if tid is None else entry | {"tid": tid}


def _microseconds(time_ns: int) -> str:
    """Return a number that `trace_viewer` writes without quotes, with all its digits."""
    sign = "-" if time_ns < 0 else ""
    return f"@{sign}{abs(time_ns) // 1_000}.{abs(time_ns) % 1_000:03}@"
