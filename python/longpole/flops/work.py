"""Formulas of operators by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.flops.attention import ATTENTION
from longpole.flops.elementwise import elementwise
from longpole.flops.products import CONVOLUTIONS, PRODUCTS

if TYPE_CHECKING:
    from longpole.flops.tensors import Call, Work

_MATRIX: Final = {**PRODUCTS, **CONVOLUTIONS, **ATTENTION}
MATRIX_OPERATORS: Final = frozenset(_MATRIX)
"""Products, convolutions and attention."""


def work_of(call: Call) -> Work | None:
    """Return the minimum FLOPs and bytes of a call.

    Returns
    -------
    Work or None
        None without a formula, or if the inputs are insufficient.

    Examples
    --------
    >>> from longpole.flops import Call, Tensor
    >>> left, right = Tensor((2, 3), None, "float"), Tensor((3, 5), None, "float")
    >>> work_of(Call("aten::mm", ((left,), (right,)), ("", "")))
    Work(flops=60, n_bytes=124, dtype='float', is_matrix=True)
    """
    formula = _MATRIX.get(call.name, elementwise)
    return formula(call)
