"""How single values of a trace are written, whatever the layout.

Everything that a repetition of the trace has to shift (times, correlations, ids, step numbers) is
written through a `Number`, so that the same code writes a trace and the template of one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from .facts import BASE_NS, Facts

if TYPE_CHECKING:
    from .kineto import Record

__all__ = [
    "Layout",
    "Number",
    "Stamps",
    "absolute",
    "floating",
    "name_text",
    "plain_number",
    "relative",
    "value_text",
    "whole",
]

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


@dataclass(frozen=True, slots=True)
class Stamps:
    """How a layout writes a point in time, and how a duration."""

    point: Callable[[int, Number], str]
    duration: Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to write a trace: a head, events with something between them, a tail.

    `quantum_ns` is the finest time it can hold.
    """

    head: Callable[[Facts], str]
    event: Callable[[Record, Number], str]
    between: str
    tail: Callable[[Facts], str]
    quantum_ns: int = 1
    metadata_first: bool = True


def plain_number(_role: str, value: int) -> str:
    """Write a number as it is."""
    return str(value)


def value_text(key: str, value: object, number: Number) -> str:
    """Write one argument."""
    role = _ROLES.get(key)
    if role is not None and isinstance(value, int):
        return number(role, value)
    return json.dumps(value)


def name_text(name: str, number: Number) -> str:
    """Write the name of an event, in quotes."""
    if name.startswith(_STEP):
        return f'"{_STEP}{number("step", int(name.removeprefix(_STEP)))}"'
    return json.dumps(name)


def _three_decimals(time_ns: int, number: Number) -> str:
    return f"{number('time', time_ns // 1_000)}.{time_ns % 1_000:03}"


def _fewest_decimals(time_ns: int, number: Number) -> str:
    """Write what Python prints for the float."""
    decimals = f"{time_ns % 1_000:03}".rstrip("0") or "0"
    return f"{number('time', time_ns // 1_000)}.{decimals}"


def _no_decimals(time_ns: int, number: Number) -> str:
    return number("time", time_ns // 1_000)


def _since_epoch(
    write: Callable[[int, Number], str],
) -> Callable[[int, Number], str]:
    return lambda time_ns, number: write(time_ns + BASE_NS, number)


def _stamps(point: Callable[[int, Number], str], write: Callable[[int, Number], str]) -> Stamps:
    return Stamps(point, lambda duration_ns: write(duration_ns, plain_number))


relative = _stamps(_three_decimals, _three_decimals)
absolute = _stamps(_since_epoch(_three_decimals), _three_decimals)
whole = _stamps(_since_epoch(_no_decimals), _no_decimals)
floating = _stamps(_fewest_decimals, _fewest_decimals)
