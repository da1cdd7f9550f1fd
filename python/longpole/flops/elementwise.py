"""Operators that memory limits: elementwise, reductions, normalisation, embedding, copies.

What they compute is an estimate, a few operations for each element; what they must read and
write is exact, and decides how fast they can be.
"""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Final

from longpole.flops.tensors import Tensor, Work

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.flops.tensors import Call

__all__ = ["elementwise", "is_pointwise"]

_COPIES: Final = frozenset({"copy", "fill", "zero", "clone", "cat", "_to_copy", "masked_fill"})
_POINTWISE: Final = frozenset(
    {
        "abs",
        "add",
        "addcdiv",
        "addcmul",
        "bernoulli",
        "bitwise_and",
        "bitwise_not",
        "bitwise_or",
        "ceil",
        "clamp",
        "clamp_max",
        "clamp_min",
        "cos",
        "div",
        "elu",
        "eq",
        "erf",
        "exp",
        "exp2",
        "floor",
        "ge",
        "gelu",
        "gelu_backward",
        "gt",
        "hardsigmoid",
        "hardswish",
        "hardtanh",
        "isinf",
        "isnan",
        "le",
        "leaky_relu",
        "lerp",
        "log",
        "log1p",
        "log2",
        "logical_and",
        "logical_not",
        "logical_or",
        "logical_xor",
        "lt",
        "maximum",
        "minimum",
        "mish",
        "mul",
        "native_dropout",
        "native_dropout_backward",
        "ne",
        "neg",
        "pow",
        "reciprocal",
        "relu",
        "relu6",
        "remainder",
        "round",
        "rsqrt",
        "rsub",
        "sigmoid",
        "sigmoid_backward",
        "sign",
        "silu",
        "silu_backward",
        "sin",
        "softplus",
        "sqrt",
        "square",
        "sub",
        "tan",
        "tanh",
        "tanh_backward",
        "threshold",
        "threshold_backward",
        "tril",
        "triu",
        "where",
    }
)
_PER_ELEMENT: Final[Mapping[str, int]] = {
    "sum": 1,
    "mean": 1,
    "amax": 1,
    "amin": 1,
    "max": 1,
    "min": 1,
    "argmax": 1,
    "prod": 1,
    "cumsum": 1,
    "linalg_vector_norm": 2,
    "norm": 2,
    "var": 3,
    "std": 3,
    "var_mean": 3,
}
"""Reductions: operations for each element of the input."""
_ROWWISE: Final[Mapping[str, tuple[int, int, int]]] = {
    "_softmax": (5, 1, 1),
    "_log_softmax": (5, 1, 1),
    "_softmax_backward_data": (4, 2, 1),
    "_log_softmax_backward_data": (4, 2, 1),
    "native_layer_norm": (8, 1, 1),
    "_fused_rms_norm": (5, 1, 1),
    "native_group_norm": (8, 1, 1),
    "native_batch_norm": (8, 1, 1),
    "cudnn_batch_norm": (8, 1, 1),
    "miopen_batch_norm": (8, 1, 1),
    "native_layer_norm_backward": (14, 2, 1),
    "native_group_norm_backward": (14, 2, 1),
    "native_batch_norm_backward": (14, 2, 1),
    "cudnn_batch_norm_backward": (14, 2, 1),
    "miopen_batch_norm_backward": (14, 2, 1),
}
"""Operations for each element, and how many tensors of that size are read and written."""
_GATHERS: Final[Mapping[str, int]] = {"embedding": 1, "index_select": 2, "gather": 2}
"""The position of the indices."""
_FUSED: Final = re.compile(r"triton_(?:poi|red|per)_fused_(.+?)_\d+$")


def elementwise(call: Call) -> Work | None:
    """Tell what an operator that memory limits has to do; None for any other."""
    fused = _FUSED.match(call.name)
    if fused is not None:
        return _triton(call, fused[1])
    if not call.name.startswith("aten::") or not call.all_tensors():
        return None
    name = call.name.removeprefix("aten::")
    if name.startswith("_foreach_"):
        return _foreach(call, name)
    if name in _GATHERS:
        return _gather(call, name)
    return _by_element(call, name)


def is_pointwise(name: str) -> bool:
    """Whether an operator computes each element of its result from the same element of its inputs.

    Examples
    --------
    >>> is_pointwise("aten::mul_"), is_pointwise("aten::sum"), is_pointwise("aten::copy_")
    (True, False, True)
    """
    plain = name.removeprefix("aten::").removesuffix("_")
    return plain in _POINTWISE or plain in {"copy", "masked_fill"}


def _by_element(call: Call, name: str) -> Work | None:
    tensors = call.all_tensors()
    plain = name.removesuffix("_")
    if plain in _COPIES:
        return _copy(call, plain, is_in_place=name != plain)
    if plain in _POINTWISE:
        out = _broadcast([tensor.shape for tensor in tensors])
        return None if out is None else _moved(prod(out), tensors, prod(out))
    if name in _PER_ELEMENT:
        return _moved(_PER_ELEMENT[name] * tensors[0].numel, tensors[:1], 0)
    return _rowwise(tensors[0], *_ROWWISE[name]) if name in _ROWWISE else None


def _moved(flops: int, read: Sequence[Tensor], written: int) -> Work:
    """Read each tensor once and write `written` elements of the type of the first."""
    sizes = [tensor.item_bytes for tensor in read]
    dtype = read[0].dtype
    if None in sizes:
        return Work(flops, None, dtype, is_matrix=False)
    n_bytes = sum(tensor.stored * (tensor.item_bytes or 0) for tensor in read)
    n_bytes += written * (read[0].item_bytes or 0)
    return Work(flops, n_bytes, dtype, is_matrix=False)


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Give the shape that all broadcast to.

    Examples
    --------
    >>> _broadcast([(4, 1, 3), (5, 1), ()])
    (4, 5, 3)
    """
    rank = max(len(shape) for shape in shapes)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    out = []
    for sizes in zip(*padded, strict=True):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            return None
        out.append(wide.pop() if wide else 1)
    return tuple(out)


def _copy(call: Call, name: str, *, is_in_place: bool) -> Work | None:
    """Write the first tensor, or what is made of all, and read the others."""
    tensors = call.all_tensors()
    if name in {"fill", "zero"}:
        return _moved(0, [tensors[0]], 0)
    if name == "copy" and is_in_place and len(tensors) > 1:
        target, source = tensors[0], tensors[1]
        return _moved(0, [target, source], 0)
    if name == "masked_fill":
        return _moved(0, tensors[:2], tensors[0].numel)
    return _moved(0, tensors, sum(tensor.numel for tensor in tensors))


def _foreach(call: Call, name: str) -> Work:
    """Read all lists and write the first, or a new one; `add` and its like once each."""
    first = call.tensors[0]
    n_written = sum(tensor.numel for tensor in first)
    is_copy = any(word in name for word in ("copy", "zero"))
    return _moved(0 if is_copy else n_written, call.all_tensors(), n_written)


def _rowwise(first: Tensor, per_element: int, n_read: int, n_written: int) -> Work:
    """Count tensors of one size; what scales and shifts the rows is small beside them."""
    size = first.item_bytes
    n_bytes = None if size is None else size * (n_read * first.stored + n_written * first.numel)
    return Work(per_element * first.numel, n_bytes, first.dtype, is_matrix=False)


def _gather(call: Call, name: str) -> Work | None:
    """Read the indices and the elements that they name, and write these."""
    source, indices = call.tensor(0), call.tensor(_GATHERS[name])
    if source is None or indices is None or indices.item_bytes is None:
        return None
    rows = prod(source.shape[1:]) if name == "embedding" else 1
    if name == "index_select":
        dimension = call.value(1)
        if not isinstance(dimension, int) or not source.shape:
            return None
        rows = source.numel // max(source.shape[dimension], 1)
    taken = indices.numel * rows
    size = source.item_bytes
    n_bytes = None if size is None else indices.stored * indices.item_bytes + 2 * taken * size
    return Work(0, n_bytes, source.dtype, is_matrix=False)


def _triton(call: Call, names: str) -> Work | None:
    """Count a kernel that Inductor fused: its arguments are all that it reads and writes.

    Its name lists the operators; each counts once for each element of the largest argument.
    Operators with names of several words cannot be told apart for certain, so words count.
    """
    tensors = call.all_tensors()
    if not tensors:
        return None
    largest = max(tensor.numel for tensor in tensors)
    known = sum(word in _POINTWISE or word in _PER_ELEMENT for word in names.split("_"))
    return _moved(known * largest, tensors, 0)
