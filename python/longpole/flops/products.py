"""Matrix products: each multiply-add counts as two operations."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from longpole.flops.tensors import Tensor, Work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from longpole.flops.tensors import Call

__all__ = ["PRODUCTS"]

_MATRIX: Final = 2
_BATCH: Final = 3


def _product(call: Call, first: int, *, addend: int | None = None) -> Work | None:
    """`(b)mkn`: left `[..., m, k]` times right `[..., k, n]`, plus an addend."""
    left, right = call.tensor(first), call.tensor(first + 1)
    if left is None or right is None or len(left.shape) not in {_MATRIX, _BATCH}:
        return None
    if len(left.shape) != len(right.shape) or left.shape[-1] != right.shape[-2]:
        return None
    out = (*left.shape[:-1], right.shape[-1])
    added = None if addend is None else call.tensor(addend)
    return _work(left, right, out, added, left.shape[-1])


def _linear(call: Call) -> Work | None:
    """`linear(x, weight, bias)`: x `[..., k]`, weight `[n, k]`."""
    left, weight = call.tensor(0), call.tensor(1)
    if left is None or weight is None or not left.shape or len(weight.shape) != _MATRIX:
        return None
    if left.shape[-1] != weight.shape[1]:
        return None
    out = (*left.shape[:-1], weight.shape[0])
    return _work(left, weight, out, call.tensor(2), left.shape[-1])


def _work(
    left: Tensor, right: Tensor, out: tuple[int, ...], added: Tensor | None, inner: int
) -> Work:
    flops = 2 * prod(out) * inner
    sizes = [tensor.item_bytes for tensor in (left, right)]
    if None in sizes:
        return Work(flops, None, left.dtype, is_matrix=True)
    # fp8 products write a wider type that the inputs do not show; the smallest is assumed.
    written = prod(out) * (left.item_bytes or 0)
    read = left.stored * (left.item_bytes or 0) + right.stored * (right.item_bytes or 0)
    read += 0 if added is None else added.stored * (added.item_bytes or 0)
    return Work(flops, read + written, left.dtype, is_matrix=True)


PRODUCTS: Final[Mapping[str, Callable[[Call], Work | None]]] = {
    "aten::mm": lambda call: _product(call, 0),
    "aten::bmm": lambda call: _product(call, 0),
    "aten::_scaled_mm": lambda call: _product(call, 0),
    "aten::addmm": lambda call: _product(call, 1, addend=0),
    "aten::addmm_": lambda call: _product(call, 1, addend=0),
    "aten::_addmm_activation": lambda call: _product(call, 1, addend=0),
    "aten::baddbmm": lambda call: _product(call, 1, addend=0),
    "aten::baddbmm_": lambda call: _product(call, 1, addend=0),
    "aten::linear": _linear,
}
"""Formula of each product. `aten::matmul` calls one of them."""
