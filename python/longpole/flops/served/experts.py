"""Mixtures of experts in one operator: two products for each token and each of its experts.

The arguments are tokens `[t, k]`, the weights `[e, 2 n, k]` and `[e, k, n]` of `e` experts, and for
each token the numbers `[t, top]` of its experts. The routed tokens are known from this shape, but
not which experts are chosen: the weights read are those of at least as many experts as one token
has, and of at most all. With a map of experts, some are on other devices and the work is bounded
from above alone.

Positions are those of vLLM's `fused_moe.py` and `_aiter_ops.py` and SGLang's `fused_moe.py`, all of
2025, of `aiter/fused_moe.py` (00062184), and of
`tensorrt_llm/_torch/custom_ops/torch_custom_ops.py` (a371b9f4, and older ones without biases).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.flops.dtypes import is_integral
from longpole.flops.tensors import Bounds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.flops.tensors import Call, Tensor

_PACKED: Final = 2
_WEIGHTS: Final = 3
_FP8: Final = "c10::Float8"


@dataclass(frozen=True, slots=True)
class _Experts:
    """Positions of the tokens, of the two weights of the experts, and of the chosen experts."""

    tokens: int = 0
    weights: tuple[int, int] = (1, 2)
    chosen: int = 4
    others: int | None = 5
    """First position at which a map of the experts may stand; None if other devices may have some
    of the experts without a map."""
    without_biases: tuple[int, int] | None = None
    """Positions of the weights in older versions, whose experts have no biases."""

    def __call__(self, call: Call) -> Bounds | None:
        """Return the FLOPs and bounds of the bytes; None if the shapes do not fit."""
        tokens, chosen = call.tensor(self.tokens), call.tensor(self.chosen)
        first, second = self._weights(call)
        if tokens is None or chosen is None or first is None or second is None:
            return None
        if len(first.shape) != _WEIGHTS or len(second.shape) != _WEIGHTS or not chosen.shape:
            return None
        width = tokens.shape[-1]
        packed = {width: 1, width // _PACKED: _PACKED}.get(first.shape[2])
        if packed is None or second.shape[1] != width or first.shape[0] != second.shape[0]:
            return None
        inner = second.shape[2] * packed
        flops = 2 * chosen.numel * width * (first.shape[1] + inner)
        least = 0 if self._is_mapped(call) else flops
        n_bytes = _bytes(tokens, first, second, chosen)
        if n_bytes is not None and least == 0:
            n_bytes = (0, n_bytes[1])
        return Bounds((least, flops), n_bytes, _computed(tokens, first, packed), is_matrix=True)

    def _weights(self, call: Call) -> tuple[Tensor | None, Tensor | None]:
        older = None if self.without_biases is None else call.tensor(self.without_biases[1])
        is_older = older is not None and len(older.shape) == _WEIGHTS
        first, second = (self.without_biases or self.weights) if is_older else self.weights
        return call.tensor(first), call.tensor(second)

    def _is_mapped(self, call: Call) -> bool:
        if self.others is None:
            return True
        places = range(self.others, len(call.tensors))
        tensors = [tensor for place in places if (tensor := call.tensor(place)) is not None]
        return any(is_integral(it.dtype) and it.numel > 1 for it in tensors if it.dtype)


def _bytes(tokens: Tensor, first: Tensor, second: Tensor, chosen: Tensor) -> tuple[int, int] | None:
    """Return bounds of the bytes: tokens, results, and the weights of the experts chosen."""
    size, of_first, of_second = (it.item_bytes for it in (tokens, first, second))
    if size is None or of_first is None or of_second is None:
        return None
    n_experts = first.shape[0]
    of_expert = (first.numel * of_first + second.numel * of_second) // max(n_experts, 1)
    least = min(chosen.shape[-1], n_experts, chosen.numel)
    most = min(n_experts, chosen.numel)
    moved = 2 * tokens.numel * size
    return moved + least * of_expert, moved + most * of_expert


def _computed(tokens: Tensor, weights: Tensor, packed: int) -> str:
    """Return the type of the products; empty if weights of few bits do not tell it."""
    if packed == 1 and weights.dtype.startswith(_FP8):
        return weights.dtype
    return tokens.dtype if weights.dtype == tokens.dtype else ""


_FUSED: Final = _Experts()
EXPERTS: Final[Mapping[str, _Experts]] = {
    "vllm::inplace_fused_experts": _FUSED,
    "vllm::outplace_fused_experts": _FUSED,
    "sglang::inplace_fused_experts": _FUSED,
    "sglang::outplace_fused_experts": _FUSED,
    "vllm::rocm_aiter_fused_moe": _FUSED,
    "aiter::fused_moe_": _FUSED,
    # (tokens, chosen experts, their weights, first product, its bias, second product, its bias)
    "trtllm::fused_moe": _Experts(weights=(3, 5), chosen=1, others=None, without_biases=(3, 4)),
}
"""Formula of each mixture of experts, of vLLM, SGLang, aiter and TensorRT-LLM."""
