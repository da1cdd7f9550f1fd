"""How torch passes a matrix product to BLAS, by shapes and strides.

torch passes a product to BLAS without copying if possible: a row-major matrix is a transposed
column-major one. So sizes are swapped, and the strides determine whether a matrix counts as
transposed. This repeats the rules of torch for a row-major result, such as every new tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from longpole.bench.tunableop.signature import UNKNOWN, Gemm

if TYPE_CHECKING:
    from longpole.bench.tunableop.inputs import Argument

__all__ = ["gemm_of", "is_contiguous", "multiplies"]

_SINGLE = 2  # dimensions of the factors of a single product


class _Factor(NamedTuple):
    """A factor as passed to BLAS."""

    trans: str
    leading: int | None


def multiplies(left: Argument, right: Argument) -> bool:
    """Whether two arguments are matrices, or batches of them, with compatible sizes."""
    a, b = left.shape or (), right.shape or ()
    return len(a) == len(b) >= _SINGLE and a[-1] == b[-2]


def gemm_of(operation: str, dtypes: tuple[str, ...], left: Argument, right: Argument) -> Gemm:
    """Swap the factors: the transposed result is the product of the transposed factors.

    Without strides there is no `leading`, and `transa` and `transb` are `?`.
    """
    left_shape, right_shape = left.shape or (), right.shape or ()
    rows, inner, columns = left_shape[-2], left_shape[-1], right_shape[-1]
    is_batched = len(left_shape) > _SINGLE
    # A result with one column is both row-major and column-major, and torch's rule for batches
    # chooses the latter: nothing is swapped.
    is_swapped = not (is_batched and columns == 1)
    a, b = (right, left) if is_swapped else (left, right)
    factor_a, factor_b = _factor(a, is_swapped=is_swapped), _factor(b, is_swapped=is_swapped)
    m, n = (columns, rows) if is_swapped else (rows, columns)
    known = factor_a.leading is not None and factor_b.leading is not None
    return Gemm(
        operation=operation,
        dtypes=dtypes,
        transa=factor_a.trans,
        transb=factor_b.trans,
        m=m,
        n=n,
        k=inner,
        batch=left_shape[0] if is_batched else None,
        leading=(factor_a.leading or 0, factor_b.leading or 0, m if is_swapped else 1)
        if known
        else None,
    )


def _factor(tensor: Argument, *, is_swapped: bool) -> _Factor:
    """Whether BLAS has to transpose a factor, and the distance between its columns."""
    shape = tensor.shape or ()
    if tensor.strides is None:
        return _Factor(UNKNOWN, None)
    rows, columns = shape[-2:]
    row_stride, column_stride = tensor.strides[-2:]
    by_rows = column_stride == 1 and row_stride >= max(1, columns)
    by_columns = row_stride == 1 and column_stride >= max(1, rows)
    if len(shape) == _SINGLE and is_contiguous(tensor):
        by_columns = False
    if by_columns and not (by_rows and is_swapped):
        return _Factor("t" if is_swapped else "n", column_stride)
    # Any other layout is first copied to row-major.
    leading = row_stride if by_rows or is_contiguous(tensor) else columns
    return _Factor("n" if is_swapped else "t", leading)


def is_contiguous(tensor: Argument) -> bool:
    """Whether it is row-major without gaps; a dimension of size one may have any stride."""
    expected = 1
    sizes, strides = tensor.shape or (), tensor.strides or ()
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True
