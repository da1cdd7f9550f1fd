"""FLOPs and bytes of HLO instructions, the operators that XLA compiles.

A product counts a multiply-add as two operations, as in HloCostAnalysis of OpenXLA. Each element of
an elementwise instruction and each element that a reduction combines counts as one. XProf weights
these by the cycles that they take on a GPU, so that a `tanh` counts as 190.

Bytes are those of the operands and of the result, without the workspace of a library. They are
unknown if only a part of an operand may be read or written.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

from longpole.flops.tensors import Work

_PRODUCTS: Final = frozenset({"dot", "convolution"})
_LIBRARY_PRODUCTS: Final = ("__cublas$", "__cudnn$convForward", "__cudnn$convBiasActivation")
_REDUCTIONS: Final = frozenset({"reduce", "reduce-window", "all-reduce"})
_PARTIAL: Final = frozenset(
    """
    dynamic-slice dynamic-update-slice gather scatter slice sort while conditional call
    """.split()  # noqa: SIM905 - shorter
)
_ELEMENTWISE: Final = frozenset(
    """
    abs add and atan2 cbrt ceil clamp compare complex convert cosine divide erf exponential
    exponential-minus-one floor imag is-finite log log-plus-one logistic maximum minimum
    multiply negate not or power real remainder round-nearest-afz round-nearest-even rsqrt
    select sign sine sqrt subtract tan tanh xor
    """.split()  # noqa: SIM905 - shorter
)
_FREE: Final = frozenset({"convert", "select", "clamp", "compare", "not", "and", "or", "xor"})
_UNKNOWN: Final = "custom-call"
_MOST: Final = 10**18
"""Larger sizes are treated as damaged."""


@dataclass(frozen=True, slots=True)
class Shape:
    """An array: its type, in torch's names, the size of an element, and its dimensions."""

    dtype: str
    item_bytes: float | None
    dimensions: tuple[int, ...]

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.dimensions)

    @property
    def n_bytes(self) -> int | None:
        """Size in memory; None for an unknown type."""
        return None if self.item_bytes is None else round(self.numel * self.item_bytes)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a computation."""

    name: str
    opcode: str
    results: tuple[Shape, ...]
    """The array; the arrays of a tuple."""
    operands: tuple[Shape, ...]
    contracted: int | None = None
    """Number of products that each element of the result of a product adds up, if known."""
    body: tuple[Instruction, ...] = ()
    """Instructions of a fusion."""
    target: str = ""
    """Function of a custom call."""
    op_name: str = ""
    """Operation of the program, such as `jit(step)/tanh`."""
    source: str = ""
    """File and line of the program."""

    @property
    def is_library_call(self) -> bool:
        """Whether a library computes it, whose kernels have other names."""
        return self.opcode == _UNKNOWN


def work_of_instruction(instruction: Instruction) -> Work | None:
    """Return the work of an instruction that runs as a kernel; None if unknown.

    Examples
    --------
    >>> left, right = Shape("float", 4, (2, 3)), Shape("float", 4, (3, 5))
    >>> dot = Instruction("dot.1", "dot", (Shape("float", 4, (2, 5)),), (left, right), 3)
    >>> work_of_instruction(dot)
    Work(flops=60, n_bytes=124, dtype='float', is_matrix=True)
    """
    counted, n_bytes = _counted(instruction), _bytes(instruction)
    if counted is None or not 0 <= counted[0] <= _MOST or not 0 <= (n_bytes or 0) <= _MOST:
        return None
    flops, product = counted
    arrays = (product or instruction).operands or instruction.results
    dtype = arrays[0].dtype if arrays else ""
    return Work(flops, n_bytes, dtype, is_matrix=product is not None)


def _counted(instruction: Instruction) -> tuple[int, Instruction | None] | None:
    """Return the FLOPs, and the instruction with the most work if it is a product."""
    if instruction.opcode == "fusion":
        return _of_fusion(instruction.body)
    numel = instruction.results[0].numel if instruction.results else 0
    is_library = instruction.target.startswith(_LIBRARY_PRODUCTS)
    if instruction.opcode in _PRODUCTS or is_library:
        contracted = instruction.contracted
        return None if contracted is None else (2 * numel * contracted, instruction)
    if instruction.opcode == _UNKNOWN:
        return None
    if instruction.opcode in _REDUCTIONS:
        combined = sum(shape.numel for shape in instruction.operands[:1]) - numel
        return max(combined, 0), None
    is_counted = instruction.opcode in _ELEMENTWISE - _FREE
    return (numel if is_counted else 0), None


def _of_fusion(body: tuple[Instruction, ...]) -> tuple[int, Instruction | None] | None:
    parts = [_counted(instruction) for instruction in body]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not parts:
        return None
    products = [(flops, product) for flops, product in known if product is not None]
    largest = max(products, key=lambda it: it[0])[1] if products else None
    return sum(flops for flops, _ in known), largest


def _bytes(instruction: Instruction) -> int | None:
    opcodes = {it.opcode for it in (instruction, *instruction.body)}
    if opcodes & _PARTIAL:
        return None
    results = instruction.results[:1] if instruction.is_library_call else instruction.results
    sizes = [shape.n_bytes for shape in (*instruction.operands, *results)]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None
