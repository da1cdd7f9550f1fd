"""The HLO modules that XProf stores in the plane `/host:metadata`.

Numbers of fields are those of `hlo.proto` and `xla_data.proto` of OpenXLA.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Final

from longpole.flops.hlo import Instruction, Shape
from longpole.formats.xplane.planes import event_types, planes, stat_names
from longpole.formats.xplane.wire import integer, integers, message_of, messages, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from longpole.formats.xplane.wire import Message

_PLANE: Final = "/host:metadata"
_STAT: Final = "Hlo Proto"
_BYTES: Final = 6
_DEEPEST: Final = 20
"""Tuples nested deeper than this are treated as damaged."""
_STATS: Final = 5
_ARRAYS: Final[Mapping[int, tuple[str, float]]] = {
    1: ("bool", 1),
    2: ("signed char", 1),
    3: ("short int", 2),
    4: ("int", 4),
    5: ("long int", 8),
    6: ("unsigned char", 1),
    7: ("unsigned short", 2),
    8: ("unsigned int", 4),
    9: ("unsigned long", 8),
    10: ("c10::Half", 2),
    11: ("float", 4),
    12: ("double", 8),
    15: ("c10::complex<float>", 8),
    16: ("c10::BFloat16", 2),
    18: ("c10::complex<double>", 16),
    19: ("c10::Float8_e5m2", 1),
    20: ("c10::Float8_e4m3fn", 1),
    21: ("s4", 0.5),
    22: ("u4", 0.5),
    24: ("c10::Float8_e5m2fnuz", 1),
    25: ("c10::Float8_e4m3fnuz", 1),
    32: ("fp4", 0.5),
}
_NO_KERNEL: Final = frozenset(
    (
        "parameter",
        "constant",
        "get-tuple-element",
        "tuple",
        "bitcast",
        "after-all",
        "partition-id",
        "replica-id",
    )
)


@dataclass(frozen=True, slots=True)
class Module:
    """A compiled program."""

    name: str
    instructions: tuple[Instruction, ...]
    """Instructions of all computations that may run as kernels, in the order of their schedule."""


def hlo_modules(path: Path) -> list[Module]:
    """Read the modules of an `xplane.pb`; empty if it has none."""
    for name, plane in planes(path):
        if name == _PLANE:
            return [_module(module) for module in _protos(plane)]
    return []


def _protos(plane: memoryview) -> Iterator[Message]:
    names = stat_names(plane)
    for kind in event_types(plane).values():
        for stat in messages(kind, _STATS):
            if names.get(integer(stat, 1)) == _STAT and _BYTES in stat:
                [proto] = stat[_BYTES][-1:]
                if not isinstance(proto, int):
                    yield from messages(message_of(proto), 1)


def _module(module: Message) -> Module:
    computations = {integer(it, 5): messages(it, 2) for it in messages(module, 3)}
    fused = {call for body in computations.values() for it in body for call in _called(it)}
    order = {
        number: place
        for entry in messages(message_of_field(module, 7), 1)
        for sequence in messages(entry, 2)
        for place, number in enumerate(integers(sequence, 1))
    }
    found = []
    for number, body in computations.items():
        if number in fused:
            continue
        rows = _instructions(body, computations)
        scheduled = sorted(rows, key=lambda row: order.get(row[0], len(order)))
        found += [it for _, it in scheduled if it.opcode not in _NO_KERNEL]
    return Module(text(module, 1), tuple(found))


def message_of_field(message: Message, number: int) -> Message:
    """Return the last message of a field; empty without it."""
    found = messages(message, number)
    return found[-1] if found else {}


def _called(instruction: Message) -> list[int]:
    """Return the computations that are a part of an instruction, not run on their own."""
    inside = text(instruction, 2) not in {"call", "while", "conditional"}
    return integers(instruction, 38) if inside else []


def _instructions(
    body: list[Message], computations: Mapping[int, list[Message]]
) -> list[tuple[int, Instruction]]:
    shapes = {integer(it, 35): _shapes(message_of_field(it, 3)) for it in body}
    return [(integer(it, 35), _instruction(it, shapes, computations)) for it in body]


def _instruction(
    row: Message,
    shapes: Mapping[int, tuple[Shape, ...]],
    computations: Mapping[int, list[Message]],
) -> Instruction:
    opcode, metadata = text(row, 2), message_of_field(row, 7)
    operands = [shapes.get(number, ()) for number in integers(row, 36)]
    bodies = [computations.get(it, []) for it in integers(row, 38)] if opcode == "fusion" else []
    body = [it for inside in bodies for _, it in _instructions(inside, {})]
    file = text(metadata, 3)
    return Instruction(
        text(row, 1),
        opcode,
        shapes[integer(row, 35)],
        tuple(shape for arrays in operands for shape in arrays),
        _contracted(row, operands),
        tuple(body),
        text(row, 28),
        text(metadata, 2),
        f"{file}:{integer(metadata, 4)}" if file else "",
    )


def _shapes(shape: Message, depth: int = 0) -> tuple[Shape, ...]:
    inside = messages(shape, 4) if depth < _DEEPEST else []
    if inside:
        return tuple(array for it in inside for array in _shapes(it, depth + 1))
    kind = integer(shape, 2)
    if kind == 0:
        return ()
    dtype, n_bytes = _ARRAYS.get(kind, ("", None))
    return (Shape(dtype, n_bytes, tuple(integers(shape, 3))),)


def _contracted(row: Message, operands: list[tuple[Shape, ...]]) -> int | None:
    """Return how many products each element of the result adds up; None if it is not a product."""
    arrays = [shapes[0] for shapes in operands if shapes]
    if len(arrays) < 2:  # noqa: PLR2004
        return None
    left, right = (it.dimensions for it in arrays[:2])
    numbers = message_of_field(row, 16)
    if numbers:
        feature = integer(numbers, 4)
        out = right[feature] if 0 <= feature < len(right) else 0
        return prod(right) // out if out else None
    contracting = integers(message_of_field(row, 30), 1)
    if text(row, 2) == "custom-call":
        contracting = _of_library(text(row, 43))
    if text(row, 2) not in {"dot", "custom-call"} or not contracting:
        return None
    is_known = all(0 <= place < len(left) for place in contracting)
    return prod(left[place] for place in contracting) if is_known else None


def _of_library(config: str) -> list[int]:
    """Return the contracting dimensions that the settings of a library call contain."""
    try:
        numbers = json.loads(config)["gemm_backend_config"]["dot_dimension_numbers"]
        return [int(place) for place in numbers["lhs_contracting_dimensions"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
