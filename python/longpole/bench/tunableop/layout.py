"""How torch passes a matrix product to BLAS, from shapes and strides.

torch passes a product to BLAS without copying where it can: a matrix that is stored by rows
is a transposed one that is stored by columns. So sizes are swapped, and whether a matrix
counts as transposed follows from its strides. This repeats the rules of torch for a result
that is stored by rows, as every fresh result is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from longpole.bench.tunableop.signature import UNKNOWN, Gemm

if TYPE_CHECKING:
    from longpole.bench.tunableop.inputs import Argument

__all__ = ["gemm_of", "is_contiguous", "multiplies"]

_SINGLE = 2  # dimensions of the factors of a single product


class _Factor(NamedTuple):
    """A factor as BLAS takes it."""

    trans: str
    leading: int | None


def multiplies(left: Argument, right: Argument) -> bool:
    """Whether two arguments are matrices, or batches of them, that fit each other."""
    a, b = left.shape or (), right.shape or ()
    return len(a) == len(b) >= _SINGLE and a[-1] == b[-2]


def gemm_of(operation: str, dtypes: tuple[str, ...], left: Argument, right: Argument) -> Gemm:
    """Swap the factors: the transposed result is the product of the transposed factors.

    Without strides there is no `leading`, and `transa` and `transb` are `?`.
    """
    left_shape, right_shape = left.shape or (), right.shape or ()
    rows, inner, columns = left_shape[-2], left_shape[-1], right_shape[-1]
    is_batched = len(left_shape) > _SINGLE
    # A result with one column is stored by rows and by columns alike, and torch's rule for
    # batches takes the second first: nothing is swapped.
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
    """Say whether BLAS has to transpose a factor, and how far apart its columns are."""
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
    # Anything else is copied to rows first.
    leading = row_stride if by_rows or is_contiguous(tensor) else columns
    return _Factor("n" if is_swapped else "t", leading)


def is_contiguous(tensor: Argument) -> bool:
    """Whether it is stored by rows without gaps; a dimension of one may have any stride."""
    expected = 1
    sizes, strides = tensor.shape or (), tensor.strides or ()
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True
