"""Determines which GEMMs a matrix product of torch looks up, from its arguments.

The kind of scaling is part of the signature of a scaled product, `_scaled_mm`, and follows from the
shapes of the scales. ROCm and CUDA builds of torch write different signatures, so a product has
two. The rules are those of torch 2.15; microscaled formats (MX, NVFP4), whose scales may be
rearranged, are not derived.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from longpole.bench.tunableop.inputs import DTYPES, gemm_of, is_contiguous, multiplies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.bench.tunableop.inputs import Argument, Gemm

SCALED: Final = ("aten::_scaled_mm", "aten::_scaled_mm_v2")
"""The scaled products; the second, from torch 2.10 on, has the kind of scaling as an argument."""

PRODUCTS: Final = (
    "aten::mm",
    "aten::addmm",
    "aten::addmm_",
    "aten::_addmm_activation",
    "aten::bmm",
    "aten::baddbmm",
    "aten::baddbmm_",
    *SCALED,
)
"""Operators that use TunableOp. `linear` and `matmul` call one of them."""

NOT_TUNABLE: Final = (
    "aten::_int_mm",
    "aten::_grouped_mm",
    "aten::_scaled_grouped_mm",
    "aten::_scaled_grouped_mm_v2",
    "aten::_weight_int4pack_mm",
    "aten::_weight_int8pack_mm",
    "aten::_mixed_dtypes_linear",
    "aten::_cslt_sparse_mm",
    "aten::_sparse_semi_structured_linear",
    "aten::_sparse_semi_structured_mm",
    "aten::_sparse_semi_structured_addmm",
)
"""Matrix products that torch runs without TunableOp: no results file can cover them."""

_SINGLE: Final = 2  # dimensions of the factors of a single product
_ADDS: Final = ("aten::addmm", "aten::_addmm_activation", "aten::baddbmm")


def gemms_of(operator: str, arguments: Sequence[Argument]) -> list[Gemm]:
    """Return the GEMMs that an operator looks up, most likely first.

    Parameters
    ----------
    operator
        One of `PRODUCTS`.
    arguments
        Its arguments.

    Returns
    -------
    list of Gemm
        Several if the version or the settings of torch determine which one is called:
        an `addmm` with a bias is one GEMM with bias, or one without, and products of `float`
        are looked up as `tf32` where that is allowed. Without strides there is no `leading`,
        and `transa` and `transb` are `?`. Empty if the arguments are insufficient.

    Examples
    --------
    >>> from longpole.bench.tunableop.inputs import Argument
    >>> x = Argument((36, 128), (128, 1), "float")
    >>> weight = Argument((128, 768), (1, 128), "float")
    >>> [gemm.key for gemm in gemms_of("aten::mm", [x, weight])][0]
    ('GemmTunableOp_float_TN', 'tn_768_36_128_ld_128_128_768')
    """
    if operator in SCALED:
        return scaled_gemms(operator, arguments)
    addend, factors = _arguments(operator, arguments)
    if len(factors) != _SINGLE or not multiplies(*factors) or _is_odd_result(operator, addend):
        return []
    operations = _operations(addend, len(factors[0].shape or ()))
    return [
        gemm_of(operation, (dtype,), *factors)
        for dtype in _dtypes(factors[0].dtype)
        for operation in operations
    ]


def _operations(addend: Argument | None, n_dimensions: int) -> list[str]:
    """Return the possible BLAS operations; the version determines whether they include a bias."""
    if n_dimensions > _SINGLE:
        return ["GemmStridedBatched"]
    has_bias = addend is not None and len(addend.shape or ()) == 1
    return ["GemmAndBias", "Gemm"] if has_bias else ["Gemm"]


def _is_odd_result(operator: str, addend: Argument | None) -> bool:
    """Whether a product is written to a tensor that may not be row-major."""
    if not operator.endswith("_") or addend is None:
        return False
    return addend.strides is None or not is_contiguous(addend)


def _dtypes(name: str) -> list[str]:
    """Return TunableOp's names for a type: two for float, none for integers."""
    dtype = DTYPES.get(name)
    if dtype is None:
        return []
    return [dtype, "tf32"] if dtype == "float" else [dtype]


def _arguments(
    operator: str, arguments: Sequence[Argument]
) -> tuple[Argument | None, Sequence[Argument]]:
    """Separate the addend from the factors."""
    if operator.removesuffix("_") in _ADDS:
        return (arguments[0], arguments[1:3]) if arguments else (None, [])
    return None, arguments[:2]


# torch's numbers of its types, and TunableOp's names.
_SCALAR_TYPES: Final = {
    "5": "Half",
    "6": "float",
    "7": "double",
    "15": "BFloat16",
    "23": "Float8_e5m2",
    "24": "Float8_e4m3fn",
    "25": "Float8_e5m2fnuz",
    "26": "Float8_e4m3fnuz",
}

_TENSOR, _ROWS, _ROW_BLOCKS, _SQUARE_BLOCKS = 0, 1, 4, 5
_BLOCK: Final = 128

# The pairs of scalings in the order in which torch tries them.
_PAIRS: Final = (
    (_TENSOR, _TENSOR),
    (_ROWS, _ROWS),
    (_SQUARE_BLOCKS, _ROW_BLOCKS),
    (_ROW_BLOCKS, _SQUARE_BLOCKS),
    (_ROW_BLOCKS, _ROW_BLOCKS),
)


@dataclass(frozen=True, slots=True)
class _Product:
    """A scaled product, with the factors in torch's order.

    `scalings` are torch's numbers of the kinds; `is_fast` is None if unknown.
    """

    left: Argument
    right: Argument
    scalings: tuple[int, int]
    bias: str
    out: str
    has_result_scale: bool
    is_fast: bool | None


def scaled_gemms(operator: str, arguments: Sequence[Argument]) -> list[Gemm]:
    """Return the GEMMs that a scaled product looks up: that of a ROCm build, then of a CUDA build.

    Parameters
    ----------
    operator
        One of `SCALED`.
    arguments
        Its arguments; numbers must have been recorded.

    Returns
    -------
    list of Gemm
        Empty if the arguments are insufficient.
    """
    product = _first(arguments) if operator == SCALED[0] else _second(arguments)
    if product is None or not multiplies(product.left, product.right):
        return []
    dtypes = (_name(product.left), _name(product.right), product.out)
    plain = gemm_of("ScaledGemm", dtypes, product.left, product.right)
    tails = [_rocm_tail(product), _cuda_tail(product)]
    return [replace(plain, tail=tail) for tail in tails if tail is not None]


def _first(arguments: Sequence[Argument]) -> _Product | None:
    """Parse `_scaled_mm(a, b, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum)`."""
    if len(arguments) < len(("a", "b", "scale_a", "scale_b", "bias", "scale", "out", "fast")):
        return None
    left, right, scale_left, scale_right, bias, scale, out, fast = arguments[:8]
    return _product(
        left, right, _scalings(left, right, scale_left, scale_right), bias, scale, out, fast
    )


def _second(arguments: Sequence[Argument]) -> _Product | None:
    """Parse `_scaled_mm_v2`, in which each factor has scales, their kinds and their layout."""
    if len(arguments) < len(("a", "b", *("scales", "kinds", "stored") * 2, "bias", "out", "", "")):
        return None
    kinds = [_only(arguments[place]) for place in (3, 6)]
    is_plain = all(_only(arguments[place]) == 0 for place in (4, 7))
    found = next((pair for pair in _PAIRS if is_plain and list(pair) == kinds), None)
    none = arguments[8]._replace(dtype="")
    left, right, bias, out, fast = (arguments[place] for place in (0, 1, 8, 9, 11))
    return _product(left, right, found, bias, none, out, fast)


def _product(
    left: Argument,
    right: Argument,
    scalings: tuple[int, int] | None,
    *others: Argument,
) -> _Product | None:
    bias, scale, out, fast = others
    if scalings is None or out.value is None:
        return None
    name = _SCALAR_TYPES.get(out.value) if out.value else _name(left)
    if name is None:
        return None
    is_fast = {"True": True, "False": False}.get(fast.value or "")
    bias_name = _name(bias) or "None"
    has_result_scale = bool(scale.dtype) and name.startswith("Float8")
    return _Product(left, right, scalings, bias_name, name, has_result_scale, is_fast)


def _scalings(
    left: Argument, right: Argument, scale_left: Argument, scale_right: Argument
) -> tuple[int, int] | None:
    """Determine the kinds of scaling as torch does: the first pair that fits the shapes."""
    if {scale_left.dtype, scale_right.dtype} != {"float"} or not multiplies(left, right):
        return None
    rows, inner = left.shape or ()
    columns = (right.shape or ())[1]
    for pair in _PAIRS:
        left_shape = _scale_shape(pair[0], rows, inner)
        right_shape = _scale_shape(pair[1], columns, inner)
        turned = (scale_right.shape or ())[::-1]
        if _fits(scale_left.shape or (), left_shape) and _fits(turned, right_shape):
            return pair
    return None


def _scale_shape(scaling: int, rows: int, inner: int) -> tuple[int, ...]:
    """Return the shape of the scales of a factor with `rows` rows."""
    blocks = -(-inner // _BLOCK)
    return {
        _TENSOR: (),
        _ROWS: (rows, 1),
        _ROW_BLOCKS: (rows, blocks),
        _SQUARE_BLOCKS: (-(-rows // _BLOCK), blocks),
    }[scaling]


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Compare shapes; a single scale may have any number of dimensions."""
    return all(size == 1 for size in shape) if wanted == () else shape == wanted


def _rocm_tail(product: _Product) -> str:
    return f"_rw_{int(product.scalings == (_ROWS, _ROWS))}_bias_{product.bias}"


def _cuda_tail(product: _Product) -> str | None:
    """Return the types and scalings in BLAS's order of the factors, which is reversed."""
    if product.is_fast is None:
        return None
    types = f"_a_{_name(product.right)}_b_{_name(product.left)}_c_{_as_text(product.out)}"
    scalings = f"_as_Float_bs_Float_ast_{product.scalings[1]}_bst_{product.scalings[0]}"
    flags = f"_dscale_{int(product.has_result_scale)}_fast_{int(product.is_fast)}"
    return f"{types}{scalings}{flags}_bias_{product.bias}"


def _name(argument: Argument) -> str:
    return argument.dtype.removeprefix("c10::")


def _as_text(dtype: str) -> str:
    """Return a type in torch's own names."""
    return {"float": "Float", "double": "Double"}.get(dtype, dtype)


def _only(argument: Argument) -> int | None:
    """Return the number in a list of length one."""
    text = (argument.value or "").strip("[]")
    return int(text) if text.isdecimal() else None
