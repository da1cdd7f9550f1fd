"""Matrix products: each multiply-add counts as two operations."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final

from longpole.flops.tensors import Tensor, Work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from longpole.flops.tensors import Call

_MATRIX: Final = 2
_BATCH: Final = 3


def _product(call: Call, first: int, *, addend: int | None = None) -> Work | None:
    """Count `(b)mkn`: left `[..., m, k]` times right `[..., k, n]`, plus an addend."""
    left, right = call.tensor(first), call.tensor(first + 1)
    if left is None or right is None or len(left.shape) not in {_MATRIX, _BATCH}:
        return None
    if len(left.shape) != len(right.shape) or left.shape[-1] != right.shape[-2]:
        return None
    out = (*left.shape[:-1], right.shape[-1])
    added = None if addend is None else call.tensor(addend)
    return _work(left, right, out, added, left.shape[-1])


def _linear(call: Call) -> Work | None:
    """Count `linear(x, weight, bias)`: x `[..., k]`, weight `[n, k]`."""
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
    # fp8 products write a wider type, which the inputs do not show; the smallest one is assumed.
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
"""Formula of each product operator. `aten::matmul` calls one of them."""


# Convolutions of any number of dimensions, grouped, dilated, transposed, and backward.


_SPATIAL: Final = 2  # number of dimensions before these: batch, channels


@dataclass(frozen=True, slots=True)
class _Places:
    """Positions of a convolution's arguments; the name may determine `transposed`."""

    stride: int
    padding: int
    dilation: int
    groups: int
    transposed: int | bool = False
    output_padding: int | None = None

    def __call__(self, call: Call) -> Work | None:
        """Count the work of a forward pass."""
        x, weight = call.tensor(0), call.tensor(1)
        known = isinstance(self.transposed, bool)
        is_transposed = self.transposed if known else call.value(self.transposed)
        if x is None or weight is None or not isinstance(is_transposed, bool):
            return None
        if len(x.shape) != len(weight.shape) or len(x.shape) <= _SPATIAL:
            return None
        sizes = [call.value(place) for place in (self.stride, self.padding, self.dilation)]
        extra = 0 if self.output_padding is None else call.value(self.output_padding)
        out = _out(x, weight, sizes, extra, is_transposed=is_transposed)
        if out is None:
            return None
        flops = 2 * x.shape[0] * prod(x.shape[_SPATIAL:] if is_transposed else out) * weight.numel
        groups = call.value(self.groups) or 1
        channels = weight.shape[1] * groups if is_transposed else weight.shape[0]
        n_bytes = _bytes([x, weight], x.shape[0] * channels * prod(out))
        return Work(flops, n_bytes, x.dtype, is_matrix=True)


def _sizes(value: Any, count: int) -> list[int] | None:
    """Parse a list of sizes; a single size applies to all dimensions."""
    values = [value] if isinstance(value, int) else value
    if not isinstance(values, list) or len(values) not in {1, count}:
        return None
    return values * count if len(values) == 1 else values


def _out(
    x: Tensor, weight: Tensor, sizes: Sequence[Any], extra: Any, *, is_transposed: bool
) -> list[int] | None:
    """Return the size of the output along each dimension except batch and channels."""
    count = len(x.shape) - _SPATIAL
    lists = [known for value in (*sizes, extra) if (known := _sizes(value, count)) is not None]
    if len(lists) <= len(sizes):
        return None
    rows = zip(x.shape[_SPATIAL:], weight.shape[_SPATIAL:], *lists, strict=True)
    if is_transposed:
        return [
            (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + added + 1
            for size, kernel, stride, padding, dilation, added in rows
        ]
    return [
        (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
        for size, kernel, stride, padding, dilation, _ in rows
    ]


def _backward(call: Call) -> Work | None:
    """Count `convolution_backward(grad, x, weight, ..., transposed [7], ..., output_mask [10])`."""
    grad, x, weight = (call.tensor(place) for place in range(3))
    transposed, mask = call.value(7), call.value(10)
    if grad is None or x is None or weight is None or transposed is None:
        return None
    if not isinstance(mask, list) or len(mask) <= 1:
        return None
    positions = prod((x if transposed else grad).shape[_SPATIAL:])
    once = 2 * x.shape[0] * positions * weight.numel
    by_input, by_weight = bool(mask[0]), bool(mask[1])
    read = [grad, *([weight] if by_input else []), *([x] if by_weight else [])]
    written = x.numel * by_input + weight.numel * by_weight
    return Work(once * (by_input + by_weight), _bytes(read, written), x.dtype, is_matrix=True)


def _bytes(read: Sequence[Tensor], written: int) -> int | None:
    sizes = [tensor.item_bytes for tensor in read]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return None
    total = sum(tensor.stored * size for tensor, size in zip(read, known, strict=True))
    return total + written * known[0]


CONVOLUTIONS: Final[Mapping[str, Callable[[Call], Work | None]]] = {
    "aten::convolution": _Places(3, 4, 5, 8, transposed=6, output_padding=7),
    "aten::_convolution": _Places(3, 4, 5, 8, transposed=6, output_padding=7),
    "aten::convolution_overrideable": _Places(3, 4, 5, 8, transposed=6, output_padding=7),
    "aten::cudnn_convolution": _Places(3, 2, 4, 5),
    "aten::cudnn_convolution_transpose": _Places(4, 2, 5, 6, transposed=True, output_padding=3),
    "aten::cudnn_convolution_relu": _Places(3, 4, 5, 6),
    "aten::cudnn_convolution_add_relu": _Places(5, 6, 7, 8),
    "aten::miopen_convolution": _Places(4, 3, 5, 6),
    "aten::mkldnn_convolution": _Places(4, 3, 5, 6),
    "aten::convolution_backward": _backward,
}
"""Formula of each convolution operator. `aten::conv2d` and similar ones call one of them."""
