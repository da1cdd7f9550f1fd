"""The bytes of a trace as Kineto writes them: one key a line, times since a base in the head.

Everything that a repetition of the trace has to shift (times, correlations, ids, step numbers) is
written through a `Number`, so that the same code writes a trace and the template of one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from .facts import Facts, device_properties

if TYPE_CHECKING:
    from .kineto import Record

Number: TypeAlias = Callable[[str, int], str]
"""Writes a number of a role: `time`, `correlation`, `external id`, `event index` and so on."""

_ROLES = {
    "correlation": "correlation",
    "wait_on_cuda_event_record_corr_id": "correlation",
    "External id": "external id",
    "Record function id": "external id",
    "Ev Idx": "event index",
    "Sequence number": "sequence",
    "Python id": "python id",
    "Python parent id": "python id",
}
_STEP = "ProfilerStep#"


def plain_number(_role: str, value: int) -> str:
    """Write a number as it is."""
    return str(value)


def head(facts: Facts) -> str:
    """Write what stands before the events."""
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


def tail(facts: Facts) -> str:
    """Write what follows the events."""
    return f"""
  ],"traceName": "{facts.trace_name}" }}"""


def event(entry: Record, number: Number) -> str:
    """Write one event."""
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
    duration = _microseconds(entry["duration_ns"], plain_number)
    return [
        '"ph": "X"',
        f'"cat": "{entry["cat"]}"',
        f'"name": {_name_text(entry["name"], number)}',
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
    return f'"ts": {_microseconds(entry["start_ns"], number)}'


def _lane(entry: Record) -> list[str]:
    return [f'"pid": {json.dumps(entry["pid"])}', f'"tid": {json.dumps(entry["tid"])}']


def _args(entry: Record, number: Number) -> list[str]:
    if "args" not in entry:
        return []
    pairs = [f'"{key}": {_value_text(key, value, number)}' for key, value in entry["args"].items()]
    text = ", ".join(pairs)
    if pairs and pairs[0].startswith('"External id"'):
        text = text.replace(", ", ",", 1)
    return [f'"args": {{\n      {text}\n    }}']


def _value_text(key: str, value: object, number: Number) -> str:
    """Write one argument."""
    role = _ROLES.get(key)
    if role is not None and isinstance(value, int):
        return number(role, value)
    return json.dumps(value)


def _name_text(name: str, number: Number) -> str:
    """Write the name of an event, in quotes."""
    if name.startswith(_STEP):
        return f'"{_STEP}{number("step", int(name.removeprefix(_STEP)))}"'
    return json.dumps(name)


def _microseconds(time_ns: int, number: Number) -> str:
    return f"{number('time', time_ns // 1_000)}.{time_ns % 1_000:03}"
