"""Copies of operands to another layout right before a matrix product."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop
from longpole.remedies.model import Found, Remedy
from longpole.remedies.rooflines import (
    Sized,
    in_launch_order,
    in_shape,
    is_product,
    most_often,
    sizes_of,
)
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.flops import Tensor
    from longpole.remedies.facts import Facts

_MATRIX: Final = 2


def _find(facts: Facts) -> Iterator[Found]:
    copies = [row for rows in in_launch_order(facts) for row in _before_products(rows)]
    total_ns = sum(row.duration_ns for row in copies)
    if not copies or not facts.is_worth(total_ns):
        return
    kernels = [event for row in copies for event in row.events]
    longest = most_often(copies)
    n_copies = round(facts.per_window(len(kernels)))
    yield Found(
        careful=[Drop(kind="kernel", events=kernels)],
        advice=(
            "Pass transposed operands to the product as they are, without `contiguous()` or "
            "`clone()`"
        ),
        evidence=(
            f"{count(max(n_copies, 1), 'copy', 'copies')} {facts.each} only "
            f"{'swaps' if n_copies <= 1 else 'swap'} rows and columns before a product, such as "
            f"{in_shape(longest)}"
        ),
        name=longest.name,
        events=facts.longest(kernel for row in copies for kernel in row.kernels),
    )


def _before_products(rows: list[Sized]) -> Iterator[Sized]:
    """List the copies directly before a product with the same number of elements."""
    waiting: list[Sized] = []
    for row in rows:
        if _is_transposition(row):
            waiting.append(row)
            continue
        if is_product(row):
            sizes = sizes_of(row)
            yield from (copy for copy in waiting if copy.tensors[0].numel in sizes)
        waiting = []


def _is_transposition(row: Sized) -> bool:
    """Whether an operator only swaps the last two dimensions, which products can read directly."""
    if row.name != "aten::copy_" or row.call is None:
        return False
    target, source = row.call.tensor(0), row.call.tensor(1)
    if target is None or source is None or target.dtype != source.dtype:
        return False
    if target.shape != source.shape or len(target.shape) < _MATRIX:
        return False
    return _is_row_major(target) != _is_row_major(source) and all(
        _is_row_major(tensor) or _is_column_major(tensor) for tensor in (target, source)
    )


def _is_row_major(tensor: Tensor) -> bool:
    return tensor.strides == _dense(tensor.shape)


def _is_column_major(tensor: Tensor) -> bool:
    """Whether each matrix of a tensor is stored by columns."""
    *batch, rows, columns = tensor.shape
    *outer, last, inner = _dense((*batch, columns, rows))
    return tensor.strides == (*outer, inner, last)


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor.

    Examples
    --------
    >>> _dense((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


REMEDY: Final = Remedy(
    id="layout_copies",
    side="kernels",
    effort="one_line",
    needs="recorded shapes with strides",
    seen_by=(
        "copies that swap the last two dimensions of a tensor, with nothing but such copies "
        "between them and a product of a tensor of this size"
    ),
    change="the copies are gone; products read transposed operands about as fast",
    not_when="the copy does anything else: another type, another order of more dimensions",
    find=_find,
)
