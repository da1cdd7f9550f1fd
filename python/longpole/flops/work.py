"""Formulas of operators by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.flops.attention import ATTENTION
from longpole.flops.elementwise import elementwise
from longpole.flops.products import CONVOLUTIONS, PRODUCTS
from longpole.flops.served.cache_writes import CACHE_WRITES
from longpole.flops.served.experts import EXPERTS
from longpole.flops.served.fused_norms import FUSED_NORMS
from longpole.flops.served.gated_activations import GATED_ACTIVATIONS
from longpole.flops.served.paged_attention import PAGED_ATTENTION, paged_name
from longpole.flops.served.quantisation import QUANTISATION
from longpole.flops.served.quantised_products import QUANTISED_PRODUCTS
from longpole.flops.served.ragged_attention import RAGGED_ATTENTION
from longpole.flops.served.rotary import ROTARY
from longpole.flops.served.routing import ROUTING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from longpole.flops.tensors import Bounds, Call, Work

_MATRIX: Final[Mapping[str, Callable[[Call], Work | None]]] = {
    **PRODUCTS,
    **CONVOLUTIONS,
    **ATTENTION,
    **QUANTISED_PRODUCTS,
}
_BOUNDED: Final[Mapping[str, Callable[[Call], Bounds | None]]] = {
    **EXPERTS,
    **RAGGED_ATTENTION,
    **PAGED_ATTENTION,
}
_MOVING: Final[Mapping[str, Callable[[Call], Work | None]]] = {
    **GATED_ACTIVATIONS,
    **FUSED_NORMS,
    **QUANTISATION,
    **ROUTING,
    **ROTARY,
    **CACHE_WRITES,
}
MATRIX_OPERATORS: Final = frozenset({**_MATRIX, **_BOUNDED})
"""Products, convolutions, attention and mixtures of experts."""


def work_of(call: Call) -> Work | None:
    """Return the minimum FLOPs and bytes of a call.

    Returns
    -------
    Work or None
        None without a formula, or if the inputs are insufficient; see `bounds_of`.

    Examples
    --------
    >>> from longpole.flops import Call, Tensor
    >>> left, right = Tensor((2, 3), None, "float"), Tensor((3, 5), None, "float")
    >>> work_of(Call("aten::mm", ((left,), (right,)), ("", "")))
    Work(flops=60, n_bytes=124, dtype='float', is_matrix=True)
    """
    formula = _MATRIX.get(call.name) or _MOVING.get(call.name, elementwise)
    found = formula(call)
    if found is not None:
        return found
    bounds = bounds_of(call)
    return None if bounds is None else bounds.work


def bounds_of(call: Call) -> Bounds | None:
    """Return what the inputs of a call tell of its work if they do not determine it.

    Attention over sequences of unknown lengths, and experts of unknown choice, have bounds.

    Examples
    --------
    >>> from longpole.flops import Call, Tensor
    >>> tokens, chosen = Tensor((4, 8), None, "float"), Tensor((4, 2), None, "int")
    >>> weights = Tensor((16, 6, 8), None, "float"), Tensor((16, 8, 3), None, "float")
    >>> groups = (tokens,), (weights[0],), (weights[1],), (chosen,), (chosen,)
    >>> bounds = bounds_of(Call("vllm::inplace_fused_experts", groups, ("",) * 5))
    >>> bounds.flops, bounds.n_bytes
    ((1152, 1152), (832, 2560))
    """
    formula = _BOUNDED.get(paged_name(call.name))
    return None if formula is None else formula(call)
