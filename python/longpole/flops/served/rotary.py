"""Rotary position embedding: pairs of elements of each query and key are rotated.

A rotation of two elements costs four products and two sums, so three operations an element.

Positions are those of `csrc/torch_bindings.cpp` of vLLM (00256d59), of
`sgl-kernel/csrc/common_extension.cc` of SGLang (0063ef14), and of a recording of SGLang on HIP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.flops.tensors import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from longpole.flops.tensors import Call

_PER_ELEMENT: Final = 3


def _in_place(call: Call) -> Work | None:
    """Count `rotary_embedding(positions, query, key?, head_size, cos_sin_cache, is_neox)`.

    Only the first `cos_sin_cache.shape[1]` elements of each head are rotated, in place.
    """
    positions, query, cache, head = (
        call.tensor(0),
        call.tensor(1),
        call.tensor(4),
        call.value(3),
    )
    if positions is None or query is None or cache is None or not isinstance(head, int):
        return None
    rotated = cache.shape[-1] if cache.shape else 0
    key = call.tensor(2)
    n_elements = query.numel + (0 if key is None else key.numel)
    sizes = (query.item_bytes, positions.item_bytes, cache.item_bytes)
    if head <= 0 or not 0 < rotated <= head or n_elements % head:
        return None
    turned = n_elements // head * rotated
    n_bytes = None
    if None not in sizes:
        size, of_position, of_cache = (each or 0 for each in sizes)
        rows = positions.numel * (of_position + rotated * of_cache)
        n_bytes = 2 * turned * size + rows
    return Work(_PER_ELEMENT * turned, n_bytes, query.dtype, is_matrix=False)


def _out_of_place(call: Call) -> Work | None:
    """Count `apply_rope_pos_ids_cos_sin_cache(q, k, q_rope, k_rope, cos_sin_cache, pos_ids)`."""
    tensors = [call.tensor(place) for place in range(6)]
    query, key, _, _, cache, positions = tensors
    if query is None or key is None or cache is None or positions is None:
        return None
    head, rotated = query.shape[-1], cache.shape[-1]
    n_elements = query.numel + key.numel
    sizes = (query.item_bytes, positions.item_bytes, cache.item_bytes)
    if None in sizes or rotated > head:
        return None
    size, of_position, of_cache = (each or 0 for each in sizes)
    rows = positions.numel * (of_position + rotated * of_cache)
    flops = _PER_ELEMENT * n_elements // head * rotated
    return Work(flops, 2 * n_elements * size + rows, query.dtype, is_matrix=False)


ROTARY: Final[Mapping[str, Callable[[Call], Work | None]]] = {
    "_C::rotary_embedding": _in_place,
    "sgl_kernel::rotary_embedding": _in_place,
    "sgl_kernel::apply_rope_pos_ids_cos_sin_cache": _out_of_place,
}
"""Formula of each rotary embedding, of vLLM (`_C`) and SGLang."""
