"""Memory-bound operators: elementwise, reductions, normalisation, embedding, copies.

Their FLOPs are estimates, a few operations per element; the bytes that they must read and write are
exact, and limit their speed.
"""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Final

from longpole.flops.dtypes import is_integral, promoted, scalar_type
from longpole.flops.tensors import Tensor, Work, moved

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.flops.tensors import Call

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
_TO_BOOL: Final = frozenset(
    {
        "eq",
        "ge",
        "gt",
        "isinf",
        "isnan",
        "le",
        "logical_and",
        "logical_not",
        "logical_or",
        "logical_xor",
        "lt",
        "ne",
    }
)
"""Operators that return booleans."""
_TO_FLOAT: Final = frozenset(
    {
        "cos",
        "div",
        "erf",
        "exp",
        "exp2",
        "log",
        "log1p",
        "log2",
        "reciprocal",
        "rsqrt",
        "sigmoid",
        "sin",
        "sqrt",
        "tan",
        "tanh",
    }
)
"""Operators that return floating-point numbers even for integers."""
_ARITHMETIC: Final = frozenset({"add", "mul", "pow", "remainder", "rsub", "sub"})
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
"""Reductions, with their operations per element of the input."""
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
"""Operations per element, and the numbers of tensors of the input's size read and written."""
_GATHERS: Final[Mapping[str, int]] = {"embedding": 1, "index_select": 2, "gather": 2}
"""Position of the indices among the arguments."""
_FUSED: Final = re.compile(r"triton_(?:poi|red|per)_fused_(.+?)_\d+$")


def elementwise(call: Call) -> Work | None:
    """Return the work of a memory-bound operator; None for any other."""
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
    """Whether an operator computes each result element from the same element of its inputs.

    Examples
    --------
    >>> is_pointwise("aten::mul_"), is_pointwise("aten::sum"), is_pointwise("aten::copy_")
    (True, False, True)
    """
    plain = name.removeprefix("aten::").removesuffix("_")
    return plain in _POINTWISE or plain in {"copy", "masked_fill"}


def _by_element(call: Call, name: str) -> Work | None:
    plain = name.removesuffix("_")
    is_in_place = name != plain
    if plain in _COPIES:
        return _copy(call, plain, is_in_place=is_in_place)
    if plain in _POINTWISE:
        return _pointwise(call, plain, is_in_place=is_in_place)
    if name in _PER_ELEMENT:
        return _reduced(call, name)
    return _rowwise(call, *_ROWWISE[name]) if name in _ROWWISE else None


def _pointwise(call: Call, name: str, *, is_in_place: bool) -> Work | None:
    """Return the work of reading all tensors and writing one of the broadcast shape."""
    tensors = call.all_tensors()
    shape = _broadcast([tensor.shape for tensor in tensors])
    if shape is None:
        return None
    computed = _promoted(tensors)
    written = computed
    if is_in_place:
        written = tensors[0].dtype
    elif name in _TO_BOOL:
        written = "bool"
    elif computed is not None and is_integral(computed) and _makes_floats(call, name):
        written = "float"
    outputs = [Tensor(shape, None, written or "")]
    if name == "native_dropout":
        outputs.append(Tensor(shape, None, "bool"))
    return moved(prod(shape), tensors, outputs, computed)


def _makes_floats(call: Call, name: str) -> bool:
    """Whether an operator on integers returns floating-point numbers."""
    return name in _TO_FLOAT or (name in _ARITHMETIC and isinstance(call.value(1), float))


def _promoted(tensors: Sequence[Tensor]) -> str | None:
    return promoted((tensor.dtype, bool(tensor.shape)) for tensor in tensors)


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return the shape that all of these broadcast to.

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
    """Return the work of a copy, which writes the first tensor or a combination of all."""
    tensors = call.all_tensors()
    first = tensors[0]
    if name in {"fill", "zero"}:
        return moved(0, [], [first])
    if name == "copy" and is_in_place and len(tensors) > 1:
        return moved(0, tensors[1:2], [first])
    if name == "masked_fill":
        return moved(0, tensors[:2], [Tensor(first.shape, None, first.dtype)])
    dtype = _promoted(tensors)
    if name == "_to_copy":
        dtype = scalar_type(call.value(1), dtype)
    n_written = sum(tensor.numel for tensor in tensors)
    return moved(0, tensors, [Tensor((n_written,), None, dtype or "")], first.dtype)


def _foreach(call: Call, name: str) -> Work:
    """Return the work of a `_foreach_` operator, which reads lists of tensors and writes one."""
    first = call.tensors[0]
    read = call.all_tensors()
    if "copy" in name:
        read = read[len(first) :]
    if "zero" in name:
        read = []
    is_copy = any(word in name for word in ("copy", "zero"))
    n_written = sum(tensor.numel for tensor in first)
    written = [Tensor(tensor.shape, None, tensor.dtype) for tensor in first]
    return moved(0 if is_copy else n_written, read, written)


def _reduced(call: Call, name: str) -> Work:
    """Return the work of reading the first tensor and writing the reduced one."""
    first = call.all_tensors()[0]
    shape, dtype = _left(call, name, first.shape), first.dtype
    if name in {"argmax", "cumsum", "prod", "sum"} and is_integral(dtype):
        dtype = "long"
    if name in {"mean", "sum", "prod", "cumsum"}:
        place = 1 if name in {"mean", "sum"} and isinstance(call.value(1), int) else 3
        dtype = scalar_type(call.value(2 if name == "cumsum" else place), dtype)
    outputs = [Tensor(shape, None, "long" if name == "argmax" else dtype)]
    if name in {"max", "min"} and isinstance(call.value(1), int):
        outputs.append(Tensor(shape, None, "long"))
    return moved(_PER_ELEMENT[name] * first.numel, [first], outputs, first.dtype)


def _left(call: Call, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes of the dimensions that a reduction keeps; by default all are reduced."""
    dimensions = call.value(1)
    if name == "cumsum":
        return shape
    if isinstance(dimensions, int) and name not in {"mean", "sum"}:
        dimensions = [dimensions]
    if not isinstance(dimensions, list) or not dimensions or not shape:
        return ()
    rank = len(shape)
    reduced = {place % rank for place in dimensions if isinstance(place, int)}
    return tuple(size for place, size in enumerate(shape) if place not in reduced)


def _rowwise(call: Call, per_element: int, n_read: int, n_written: int) -> Work:
    """Count tensors of the input's size; the scales and shifts of the rows are negligible."""
    tensors = call.all_tensors()
    first = tensors[0]
    dtype = first.dtype
    if call.name.endswith("softmax_backward_data"):
        dtype = scalar_type(call.value(3), dtype)
    elif call.name.endswith("softmax") and call.value(2) is True:
        dtype = "float"
    alike = [tensor for tensor in tensors if tensor.numel == first.numel]
    read = (alike + n_read * [first])[:n_read]
    written = n_written * [Tensor(first.shape, None, dtype)]
    return moved(per_element * first.numel, read, written, first.dtype)


def _gather(call: Call, name: str) -> Work | None:
    """Return the work of reading indices and the elements they select, and writing the latter."""
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
    """Count the work of a kernel fused by Inductor: it reads and writes only its arguments.

    Its name lists the operators; each counts once per element of the largest argument. Operator
    names of several words cannot be separated reliably, so words are counted. An argument with more
    elements than the kernel has iterations, such as the table of an embedding, is read in part
    only: the bytes are then unknown.
    """
    tensors = call.all_tensors()
    if not tensors:
        return None
    largest = max(tensor.numel for tensor in tensors)
    sizes = [call.value(place) for place in range(len(call.values))]
    iterations = prod(size for size in sizes if type(size) is int and size > 0)
    known = sum(word in _POINTWISE or word in _PER_ELEMENT for word in names.split("_"))
    if 1 < iterations < largest:
        return Work(known * iterations, None, tensors[0].dtype, is_matrix=False)
    return moved(known * largest, tensors, [])
