"""Which GEMMs a matrix product of torch calls, from its inputs.

torch passes a product to BLAS without copying where it can: a matrix that is stored by rows
is a transposed one that is stored by columns. So sizes are swapped, and whether a matrix
counts as transposed follows from its strides. This repeats the rules of torch for a result
that is stored by rows, as every fresh result is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.bench.tunableop.signature import DTYPES, Gemm

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PRODUCTS", "Tensor", "gemms_of"]

PRODUCTS: Final = (
    "aten::mm",
    "aten::addmm",
    "aten::_addmm_activation",
    "aten::bmm",
    "aten::baddbmm",
    "aten::_scaled_mm",
)
"""The operators that TunableOp is behind. `linear` and `matmul` call one of them."""

_SINGLE: Final = 2  # dimensions of the factors of a single product


class Tensor(NamedTuple):
    """An input of an operator. `strides` is None where the profiler did not record it."""

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: str


class Factor(NamedTuple):
    """A factor as BLAS takes it."""

    trans: str
    leading: int | None


def gemms_of(operator: str, inputs: Sequence[Tensor]) -> list[Gemm]:
    """Name the GEMMs that an operator looks up, the likeliest first.

    Parameters
    ----------
    operator
        One of `PRODUCTS`.
    inputs
        The tensors that it was called with.

    Returns
    -------
    list of Gemm
        Several where it depends on the version of torch which one is called: an `addmm` with
        a bias is one GEMM with bias, or one without. Without strides there is no
        `leading`, and `transa` and `transb` are those of contiguous inputs. Empty where the
        inputs do not tell.

    Examples
    --------
    >>> x = Tensor((36, 128), (128, 1), "float")
    >>> weight = Tensor((128, 768), (1, 128), "float")
    >>> [gemm.key for gemm in gemms_of("aten::mm", [x, weight])]
    [('GemmTunableOp_float_TN', 'tn_768_36_128_ld_128_128_768')]
    """
    bias, factors = _arguments(operator, inputs)
    if len(factors) != _SINGLE or operator == "aten::_scaled_mm":
        return []
    left, right = factors
    dtype = DTYPES.get(left.dtype)
    if dtype is None or len(left.shape) != len(right.shape) or left.shape[-1] != right.shape[-2]:
        return []
    if len(left.shape) > _SINGLE:
        return [_gemm("GemmStridedBatched", dtype, left, right)]
    has_epilogue = bias is not None and len(bias.shape) == 1
    operations = ["GemmAndBias", "Gemm"] if has_epilogue else ["Gemm"]
    return [_gemm(operation, dtype, left, right) for operation in operations]


def _arguments(operator: str, inputs: Sequence[Tensor]) -> tuple[Tensor | None, Sequence[Tensor]]:
    """Tell what is added from what is multiplied."""
    tensors = [tensor for tensor in inputs if tensor.shape]
    has_addend = operator in {"aten::addmm", "aten::_addmm_activation", "aten::baddbmm"}
    return (inputs[0], tensors[1:3]) if has_addend and inputs else (None, tensors[:2])


def _gemm(operation: str, dtype: str, left: Tensor, right: Tensor) -> Gemm:
    """Swap the factors: the transposed result is the product of the transposed factors."""
    rows, inner, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    is_batched = len(left.shape) > _SINGLE
    # A result with one column is stored by rows and by columns alike, and torch's rule for
    # batches takes the second first: nothing is swapped.
    is_swapped = not (is_batched and columns == 1)
    a, b = (right, left) if is_swapped else (left, right)
    factor_a, factor_b = _factor(a, is_swapped=is_swapped), _factor(b, is_swapped=is_swapped)
    m, n = (columns, rows) if is_swapped else (rows, columns)
    known = factor_a.leading is not None and factor_b.leading is not None
    return Gemm(
        operation=operation,
        dtypes=(dtype,),
        transa=factor_a.trans,
        transb=factor_b.trans,
        m=m,
        n=n,
        k=inner,
        batch=left.shape[0] if is_batched else None,
        leading=(factor_a.leading or 0, factor_b.leading or 0, m if is_swapped else 1)
        if known
        else None,
    )


def _factor(tensor: Tensor, *, is_swapped: bool) -> Factor:
    """Say whether BLAS has to transpose a factor, and how far apart its columns are."""
    if tensor.strides is None:
        return Factor("n" if is_swapped else "t", None)
    rows, columns = tensor.shape[-2:]
    row_stride, column_stride = tensor.strides[-2:]
    by_rows = column_stride == 1 and row_stride >= max(1, columns)
    by_columns = row_stride == 1 and column_stride >= max(1, rows)
    if len(tensor.shape) == _SINGLE and _is_contiguous(tensor):
        by_columns = False
    if by_columns and not (by_rows and is_swapped):
        return Factor("t" if is_swapped else "n", column_stride)
    # Anything else is copied to rows first.
    leading = row_stride if by_rows or _is_contiguous(tensor) else columns
    return Factor("n" if is_swapped else "t", leading)


def _is_contiguous(tensor: Tensor) -> bool:
    """Whether it is stored by rows without gaps; a dimension of one may have any stride."""
    expected = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.strides or ()), strict=True):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True
