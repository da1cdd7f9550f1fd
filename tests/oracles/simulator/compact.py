"""The layouts that Python code writes: one event a line, or everything on one line."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from .facts import Facts, device_properties
from .text import Layout, Number, Stamps, floating, name_text, relative, value_text

if TYPE_CHECKING:
    from .kineto import Record

__all__ = ["PYTHON_DUMP", "PYTHON_EXPORT"]


def _export_head(facts: Facts) -> str:
    shapes = '"record_shapes": 1,\n' if facts.shapes else ""
    return (
        "{\n"
        '"schemaVersion": 1,\n'
        f'"deviceProperties": {json.dumps(device_properties(facts.n_devices))},\n'
        f'"distributedInfo": {json.dumps(facts.distributed_info)},\n'
        f"{shapes}"
        '"displayTimeUnit": "ms",\n'
        f'"baseTimeNanoseconds": {facts.base_ns},\n'
        '"traceEvents": [\n'
    )


def _export_tail(facts: Facts) -> str:
    return f'\n],\n"traceName": "{facts.trace_name}"\n}}\n'


def _dump_head(facts: Facts) -> str:
    known = {
        "schemaVersion": 1,
        "deviceProperties": device_properties(facts.n_devices),
        "distributedInfo": facts.distributed_info,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": facts.base_ns,
    }
    return json.dumps(known, separators=(",", ":"))[:-1] + ',"traceEvents":['


def _dump_tail(facts: Facts) -> str:
    return f'],"traceName":"{facts.trace_name}"}}'


def _event(entry: Record, number: Number, *, stamps: Stamps, gap: str) -> str:
    """Write an event on one line; `gap` stands between and in its arguments."""
    parts = [f'"ph":"{entry["ph"]}"']
    parts += [f'"cat":"{entry["cat"]}"'] if "cat" in entry else []
    parts += [f'"s":"{entry["s"]}"'] if "s" in entry else []
    parts += [f'"id":{number(entry["cat"], entry["id"])}'] if "id" in entry else []
    parts.append(f'"name":{name_text(entry["name"], number)}')
    parts += [f'"pid":{json.dumps(entry["pid"])}', f'"tid":{json.dumps(entry["tid"])}']
    parts.append(f'"ts":{stamps.point(entry["start_ns"], number)}')
    if "duration_ns" in entry:
        parts.append(f'"dur":{stamps.duration(entry["duration_ns"])}')
    parts += [f'"bp":"{entry["bp"]}"'] if "bp" in entry else []
    if "args" in entry:
        parts.append(f'"args":{{{_args(entry, number, gap)}}}')
    return "{" + ",".join(parts) + "}"


def _args(entry: Record, number: Number, gap: str) -> str:
    pairs = [
        f'"{key}":{gap}{value_text(key, value, number)}' for key, value in entry["args"].items()
    ]
    return f",{gap}".join(pairs)


PYTHON_EXPORT = Layout(
    head=_export_head,
    event=partial(_event, stamps=relative, gap=" "),
    between=",\n",
    tail=_export_tail,
)
PYTHON_DUMP = Layout(
    head=_dump_head,
    event=partial(_event, stamps=floating, gap=""),
    between=",",
    tail=_dump_tail,
)
