"""Scaled dot-product attention in one kernel: flash, memory-efficient, cuDNN, CPU.

The forward pass has two products, the scores `query x key` and the output `scores x value`; the
backward pass has five: the scores again, and the gradients of scores, value, query and key. The
softmax is not counted, as is usual. With a causal mask, only the unmasked pairs count: the mask is
aligned to the upper left as in torch, or to the lower right as in flash-attn. Grouped queries share
keys, which changes the bytes read but not the FLOPs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.flops.tensors import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from longpole.flops.tensors import Call, Tensor

_DIMENSIONS: Final = 4
_LOWER_RIGHT: Final = 2
"""`custom_mask_type` of a mask aligned to the lower right; 0 means no mask, 1 the upper left."""


@dataclass(frozen=True, slots=True)
class _Places:
    """Positions of the arguments of an attention operator.

    Query, key and value begin at `first`, after the gradient in a backward pass. Heads are
    dimension 1, or 2 with `heads_last`. `ragged` arguments are sequence lengths that the shapes do
    not contain.
    """

    causal: int
    first: int = 0
    heads_last: bool = False
    ragged: tuple[int, ...] = ()
    lower_right: bool = False

    def __call__(self, call: Call) -> Work | None:
        """Count the work of a forward or backward pass; None if the inputs are insufficient."""
        found = [call.tensor(self.first + place) for place in range(3)]
        tensors = [tensor for tensor in found if tensor is not None]
        if any(call.tensor(place) is not None for place in self.ragged):
            return None
        if len(tensors) < len(found) or any(len(one.shape) != _DIMENSIONS for one in tensors):
            return None
        query, key, value = tensors
        is_causal = call.value(self.causal)
        if is_causal is None:
            return None
        length = 1 if self.heads_last else 2
        sizes = (query.shape[length], key.shape[length])
        lower_right = self.lower_right or is_causal == _LOWER_RIGHT
        pairs = _pairs(*sizes, lower_right=lower_right) if is_causal else sizes[0] * sizes[1]
        pairs *= query.shape[0] * query.shape[3 - length]
        is_backward = self.first > 0
        inner, outer = (3, 2) if is_backward else (1, 1)
        flops = 2 * pairs * (inner * query.shape[-1] + outer * value.shape[-1])
        n_bytes = _bytes(query, key, value, is_backward=is_backward)
        return Work(flops, n_bytes, query.dtype, is_matrix=True)


def _pairs(queries: int, keys: int, *, lower_right: bool) -> int:
    """Return the number of query and key pairs that a causal mask keeps.

    Examples
    --------
    >>> _pairs(3, 4, lower_right=False), _pairs(4, 2, lower_right=False)
    (6, 7)
    >>> _pairs(3, 4, lower_right=True), _pairs(4, 2, lower_right=True)
    (9, 3)
    """
    growing = min(queries, keys)
    triangle = growing * (growing + 1) // 2
    if lower_right:
        return triangle + max(keys - queries, 0) * queries
    return triangle + max(queries - keys, 0) * keys


def _bytes(query: Tensor, key: Tensor, value: Tensor, *, is_backward: bool) -> int | None:
    """Return the bytes of query, key, value and output; a backward pass adds the four gradients."""
    size = query.item_bytes
    if size is None:
        return None
    out = query.numel // query.shape[-1] * value.shape[-1] if query.numel else 0
    inputs = query.numel + key.numel + value.numel
    return size * (2 * inputs + 2 * out if is_backward else inputs + out)


_DOT: Final = "aten::_scaled_dot_product_"
ATTENTION: Final[Mapping[str, Callable[[Call], Work | None]]] = {
    f"{_DOT}flash_attention": _Places(4),
    f"{_DOT}flash_attention_for_cpu": _Places(4),
    f"{_DOT}efficient_attention": _Places(6),
    f"{_DOT}cudnn_attention": _Places(6),
    f"{_DOT}flash_attention_backward": _Places(11, first=1, ragged=(6, 7)),
    f"{_DOT}flash_attention_for_cpu_backward": _Places(7, first=1),
    f"{_DOT}efficient_attention_backward": _Places(11, first=1),
    f"{_DOT}cudnn_attention_backward": _Places(14, first=1, ragged=(9, 10)),
    "aten::_flash_attention_forward": _Places(8, heads_last=True, ragged=(3, 4)),
    "aten::_flash_attention_backward": _Places(11, first=1, heads_last=True, ragged=(6, 7)),
    "aten::_efficient_attention_forward": _Places(9, heads_last=True, ragged=(4, 5)),
    "aten::_efficient_attention_backward": _Places(14, first=1, heads_last=True, ragged=(6, 7)),
    "aten::_cudnn_attention_forward": _Places(10, ragged=(4, 5)),
    "aten::_cudnn_attention_backward": _Places(14, first=1, ragged=(9, 10)),
    "flash_attn::_flash_attn_forward": _Places(5, heads_last=True, lower_right=True),
    "flash_attn::_flash_attn_backward": _Places(11, first=1, heads_last=True, lower_right=True),
}
"""Formula of each attention operator. `aten::scaled_dot_product_attention` calls one of them."""
