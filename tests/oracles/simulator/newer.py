"""The layout of Kineto today: one key a line, times since a base in the head, metadata first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from .facts import Facts, device_properties
from .text import Layout, Number, name_text, relative, value_text

if TYPE_CHECKING:
    from .kineto import Record

__all__ = ["KINETO_NOW"]


def _head(facts: Facts) -> str:
    shapes = '\n      "record_shapes": 1,' if facts.shapes else ""
    devices = ",".join(
        f"\n    {json.dumps(one, indent=2)}".replace("\n", "\n    ")
        for one in device_properties(facts.n_devices)
    )
    lines = [
        " {",
        '    "schemaVersion": 1,',
        f'    "deviceProperties": [{devices}],',
        "    ",
        f'      "trace_id": "{facts.trace_id}",{shapes}',
        f'      "distributedInfo": {json.dumps(facts.distributed_info)},',
        f'      "host_name": "{facts.host_name}",',
        '    "displayTimeUnit": "ms",',
        f'    "baseTimeNanoseconds": {facts.base_ns},',
        '    "traceEvents": [',
        "    ",
    ]
    return "\n".join(lines)


def _tail(facts: Facts) -> str:
    return f"""
  ],"traceName": "{facts.trace_name}" }}"""


def _event(entry: Record, number: Number) -> str:
    match entry["ph"]:
        case "X":
            lines = _interval_lines(entry, number)
        case "M":
            lines = [f'"ph": "M",\n    "name": "{entry["name"]}"', _point(entry, number)]
            lines += _lane(entry)
        case "i":
            lines = _instant_lines(entry, number)
        case _:
            lines = _flow_lines(entry, number)
    text = ",\n    ".join([*lines, *_args(entry, number)])
    return f"\n  {{\n    {text}\n  }}"


def _interval_lines(entry: Record, number: Number) -> list[str]:
    duration = relative.duration(entry["duration_ns"])
    return [
        '"ph": "X"',
        f'"cat": "{entry["cat"]}"',
        f'"name": {name_text(entry["name"], number)}',
        *_lane(entry),
        _point(entry, number),
        f'"dur": {duration}\n    ',
    ]


def _instant_lines(entry: Record, number: Number) -> list[str]:
    category = f'"cat": "{entry["cat"]}",' if "cat" in entry else ""
    return [
        f'"ph": "i",\n    {category}\n    "s": "{entry["s"]}"',
        f'"name": "{entry["name"]}"',
        *_lane(entry),
        _point(entry, number) + "\n    ",
    ]


def _flow_lines(entry: Record, number: Number) -> list[str]:
    bind = ', "bp": "e"' if "bp" in entry else ""
    return [
        f'"ph": "{entry["ph"]}"',
        f'"id": {number(entry["cat"], entry["id"])}',
        *_lane(entry),
        _point(entry, number),
        f'"cat": "{entry["cat"]}"',
        f'"name": "{entry["name"]}"\n    {bind}',
    ]


def _point(entry: Record, number: Number) -> str:
    return f'"ts": {relative.point(entry["start_ns"], number)}'


def _lane(entry: Record) -> list[str]:
    return [f'"pid": {json.dumps(entry["pid"])}', f'"tid": {json.dumps(entry["tid"])}']


def _args(entry: Record, number: Number) -> list[str]:
    if "args" not in entry:
        return []
    pairs = [f'"{key}": {value_text(key, value, number)}' for key, value in entry["args"].items()]
    text = ", ".join(pairs)
    if pairs and pairs[0].startswith('"External id"'):
        text = text.replace(", ", ",", 1)
    return [f'"args": {{\n      {text}\n    }}']


KINETO_NOW = Layout(head=_head, event=_event, between=",", tail=_tail)
