"""Which GEMMs a matrix product of torch looks up, by its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.bench.tunableop.layout import gemm_of, is_contiguous, multiplies
from longpole.bench.tunableop.scaled import SCALED, scaled_gemms
from longpole.bench.tunableop.signature import DTYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.bench.tunableop.inputs import Argument
    from longpole.bench.tunableop.signature import Gemm

__all__ = ["NOT_TUNABLE", "PRODUCTS", "gemms_of"]

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
