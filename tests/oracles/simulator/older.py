"""The layouts of Kineto until 2024: several keys a line, times since the epoch, metadata last."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from .facts import Facts, device_properties
from .text import Layout, Number, Stamps, absolute, name_text, value_text, whole

if TYPE_CHECKING:
    from .kineto import Record

__all__ = ["KINETO_2023", "KINETO_2024"]

_DEVICE_CATEGORIES = (
    "kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "cuda_runtime", "cuda_driver",
)  # fmt: skip
_SAME_LINE = {
    ("queued", "device"),
    ("device", "context"),
    ("stream", "correlation"),
    ("cbid", "correlation"),
    ("bytes", "memory bandwidth (GB/s)"),
}
_PROPERTIES = """
    {{
      "id": {id}, "name": "{name}", "totalGlobalMem": {totalGlobalMem},
      "computeMajor": {computeMajor}, "computeMinor": {computeMinor},
      "maxThreadsPerBlock": {maxThreadsPerBlock}, \
"maxThreadsPerMultiprocessor": {maxThreadsPerMultiprocessor},
      "regsPerBlock": {regsPerBlock}, "regsPerMultiprocessor": {regsPerMultiprocessor}, \
"warpSize": {warpSize},
      "sharedMemPerBlock": {sharedMemPerBlock}, \
"sharedMemPerMultiprocessor": {sharedMemPerMultiprocessor},
      "numSms": {numSms}, "sharedMemPerBlockOptin": {sharedMemPerBlockOptin}
    }}"""


def _head(facts: Facts) -> str:
    devices = ",".join(_PROPERTIES.format_map(one) for one in device_properties(facts.n_devices))
    shapes = '\n  "record_shapes": 1,' if facts.shapes else ""
    return f"""
{{
  "schemaVersion": 1,
  "deviceProperties": [{devices}
  ],
  "distributedInfo": {json.dumps(facts.distributed_info)},{shapes}
  "trace_id": "{facts.trace_id}",
  "host_name": "{facts.host_name}",
  "traceEvents": ["""


def _tail(facts: Facts) -> str:
    return f"""
  ],
  "traceName": "{facts.trace_name}",
  "displayTimeUnit": "ms"
}}
"""


def _event(entry: Record, number: Number, *, stamps: Stamps, line_break: str) -> str:
    point = stamps.point(entry["start_ns"], number)
    lane = f'"pid": {json.dumps(entry["pid"])}, "tid": {json.dumps(entry["tid"])}'
    match entry["ph"]:
        case "X" if entry["cat"] == "Trace":
            lines = _span_lines(entry, point, lane, stamps)
        case "X":
            name = name_text(entry["name"], number)
            duration = stamps.duration(entry["duration_ns"])
            lines = [
                f'"ph": "X", "cat": "{entry["cat"]}", "name": {name}, {lane},',
                f'"ts": {point}, "dur": {duration}',
            ]
        case "M":
            lines = [f'"name": "{entry["name"]}", "ph": "M", "ts": {point}, {lane}']
        case "i":
            lines = _instant_lines(entry, point, lane)
        case _:
            lines = _flow_lines(entry, number, point, lane)
    if "args" in entry:
        args = _args(entry, number, line_break)
        lines[-1] += f',\n    "args": {{\n      {args}\n    }}'
    return "\n  {\n    " + "\n    ".join(lines) + "\n  }"


def _span_lines(entry: Record, point: str, lane: str, stamps: Stamps) -> list[str]:
    duration = stamps.duration(entry["duration_ns"])
    return [
        f'"ph": "X", "cat": "Trace", "ts": {point}, "dur": {duration},',
        f"{lane},",
        f'"name": "{entry["name"]}"',
    ]


def _instant_lines(entry: Record, point: str, lane: str) -> list[str]:
    if "cat" not in entry:
        first = f'"name": "{entry["name"]}", "ph": "i", "s": "g",'
        return [first, f'{lane}, "ts": {point}']
    first = f'"ph": "i", "cat": "{entry["cat"]}", "s": "t", "name": "{entry["name"]}",'
    return [first, f"{lane},", f'"ts": {point}']


def _flow_lines(entry: Record, number: Number, point: str, lane: str) -> list[str]:
    arrow = number(entry["cat"], entry["id"])
    bind = ', "bp": "e"' if "bp" in entry else ""
    return [
        f'"ph": "{entry["ph"]}", "id": {arrow}, {lane}, "ts": {point},',
        f'"cat": "{entry["cat"]}", "name": "{entry["name"]}"{bind}',
    ]


def _args(entry: Record, number: Number, line_break: str) -> str:
    pairs = [(key, _argument(key, value, number)) for key, value in entry["args"].items()]
    text = ""
    for i, (key, value) in enumerate(pairs):
        if i:
            text += _between(entry, pairs[i - 1][0], key, line_break)
        text += f'"{key}": {value}'
    return text


def _between(entry: Record, before: str, key: str, line_break: str) -> str:
    if entry.get("cat") in _DEVICE_CATEGORIES:
        return ", " if (before, key) in _SAME_LINE else line_break
    return "," if before == "External id" else ", "


def _argument(key: str, value: Any, number: Number) -> str:
    if isinstance(value, float) and key.endswith("per SM"):
        return f"{value:.6f}"
    return value_text(key, value, number)


KINETO_2023 = Layout(
    head=_head,
    event=partial(_event, stamps=whole, line_break=",\n      "),
    between=",",
    tail=_tail,
    quantum_ns=1_000,
    metadata_first=False,
)
KINETO_2024 = Layout(
    head=_head,
    event=partial(_event, stamps=absolute, line_break=",      "),
    between=",",
    tail=_tail,
    metadata_first=False,
)
