"""The tensors that a torch operator takes: shapes, sizes in memory, types."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from longpole.flops.dtypes import item_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor; `strides` is None if the profiler did not record them."""

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: str

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def item_bytes(self) -> int | None:
        """Size of an element in bytes; None for an unknown type."""
        return item_bytes(self.dtype)

    @property
    def stored(self) -> int:
        """Number of elements in memory; expanded dimensions share theirs."""
        if self.strides is None or len(self.strides) != len(self.shape):
            return self.numel
        return prod(
            1 if stride == 0 else size
            for size, stride in zip(self.shape, self.strides, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operator: the tensors at each position, and the other values."""

    name: str
    tensors: tuple[tuple[Tensor, ...], ...]
    values: tuple[str, ...]

    def tensor(self, position: int) -> Tensor | None:
        """Return the tensor at a position; None for other values or a list of tensors."""
        found = self.tensors[position] if position < len(self.tensors) else ()
        return found[0] if len(found) == 1 else None

    def value(self, position: int) -> Any:
        """Return the number, flag or list at a position; None if not recorded.

        A single number represents a list of equal ones, as in torch.
        """
        text = self.values[position] if position < len(self.values) else ""
        words = {"True": True, "False": False}
        if text in words:
            return words[text]
        try:
            return json.loads(text.replace("True", "true").replace("False", "false"))
        except (ValueError, RecursionError):
            return None

    def all_tensors(self) -> list[Tensor]:
        """List every tensor with a known type."""
        return [tensor for group in self.tensors for tensor in group if tensor.dtype]


@dataclass(frozen=True, slots=True)
class Work:
    """Minimum work of one call.

    `flops` counts a multiply-add as two. `n_bytes` is the number of bytes read and written if each
    input is read once and each output written once; None if a type or a shape is unknown. `dtype`
    is the type it computes with, in torch's names. `is_matrix` is set for products, convolutions
    and attention, which run on tensor or matrix cores.
    """

    flops: int
    n_bytes: int | None
    dtype: str
    is_matrix: bool


@dataclass(frozen=True, slots=True)
class Bounds:
    """Least and most work of a call whose inputs do not determine it."""

    flops: tuple[int, int | None]
    n_bytes: tuple[int, int | None] | None
    """None if a type is unknown."""
    dtype: str
    is_matrix: bool
    ragged: Ragged | None = None
    """What determines the work once the lengths of the sequences are known."""

    @property
    def work(self) -> Work | None:
        """The work with the bytes, if both bounds are equal; None if the FLOPs are not known."""
        least, most = self.flops
        if least != most:
            return None
        known = self.n_bytes is not None and self.n_bytes[0] == self.n_bytes[1]
        n_bytes = self.n_bytes[0] if known and self.n_bytes is not None else None
        return Work(least, n_bytes, self.dtype, self.is_matrix)


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths of the sequences of one attention call, summed over its requests.

    `keys` are the tokens in the cache, and `pairs` the pairs of a query and a key that a causal
    mask keeps.
    """

    pairs: int
    keys: int


@dataclass(frozen=True, slots=True)
class Ragged:
    """Attention of `queries` tokens over sequences whose lengths are not among its inputs."""

    queries: int
    pair_flops: int
    """FLOPs of each pair of a query and a key."""
    key_bytes: int | None
    """Bytes of each key and value; None if their type is unknown."""
    other_bytes: int | None
    """Bytes of queries and results."""
    may_have_window: bool = False
    """Whether a sliding window, which the inputs do not show, may leave out pairs."""

    def bounds(self, least: Lengths, most: Lengths | None, dtype: str) -> Bounds:
        """Return the work between two lengths; `most` is None if nothing bounds them."""
        flops = (
            least.pairs * self.pair_flops,
            None if most is None else most.pairs * self.pair_flops,
        )
        n_bytes = None
        if self.key_bytes is not None and self.other_bytes is not None:
            all_bytes = None if most is None else self.other_bytes + most.keys * self.key_bytes
            n_bytes = (self.other_bytes + least.keys * self.key_bytes, all_bytes)
        return Bounds(flops, n_bytes, dtype, is_matrix=True, ragged=self)


def moved(
    flops: int, read: Sequence[Tensor], written: Sequence[Tensor], dtype: str | None = None
) -> Work:
    """Return the work of reading and writing each element once, each tensor in its own type."""
    sizes = [_bytes_of(tensor) for tensor in (*read, *written)]
    known = [size for size in sizes if size is not None]
    n_bytes = sum(known) if len(known) == len(sizes) else None
    return Work(flops, n_bytes, dtype or (read or written)[0].dtype, is_matrix=False)


def _bytes_of(tensor: Tensor) -> int | None:
    return None if tensor.item_bytes is None else tensor.stored * tensor.item_bytes


def call_of(  # noqa: PLR0917 - the columns of a frame
    name: str,
    inputs: Sequence[int],
    shapes: Sequence[Sequence[int] | None],
    strides: Sequence[Sequence[int] | None],
    dtypes: Sequence[str],
    values: Sequence[str],
) -> Call:
    """Create a call from a row of `Trace.inputs`.

    Examples
    --------
    >>> shapes, dtypes = [[2, 3], None], ["float", ""]
    >>> call = call_of("aten::sum", [0, 1], shapes, [[3, 1], None], dtypes, ["", "1"])
    >>> call.tensor(0).numel, call.tensor(1), call.value(1)
    (6, None, 1)
    """
    count = max(inputs, default=-1) + 1
    tensors: list[list[Tensor]] = [[] for _ in range(count)]
    texts = [""] * count
    rows = zip(inputs, shapes, strides, dtypes, values, strict=True)
    for position, shape, stride, dtype, value in rows:
        texts[position] = value
        if shape is not None and (dtype or shape):
            steps = None if stride is None else tuple(stride)
            tensors[position].append(Tensor(tuple(shape), steps, dtype))
    return Call(name, tuple(tuple(group) for group in tensors), tuple(texts))
