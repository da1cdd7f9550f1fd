"""Gated activations such as SwiGLU: half of each row gates the other half.

`silu_and_mul(out [t, d], input [t, 2 d])`. Each result element costs the activation, counted as
four operations, and a product.

Positions are those of `csrc/torch_bindings.cpp` of vLLM (00256d59), of
`sgl-kernel/csrc/common_extension.cc` of SGLang (0063ef14), and of `aiter/ops/activation.py`
(0f19c656).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.flops.served.moves import Moves, named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.flops.tensors import Call


def _halves(call: Call) -> bool:
    out, both = call.tensor(0), call.tensor(1)
    return out is not None and both is not None and 2 * out.numel == both.numel


def _is_alike(call: Call) -> bool:
    out, one = call.tensor(0), call.tensor(1)
    return out is not None and one is not None and out.numel == one.numel


_GATED: Final = Moves(read=(1,), written=(0,), flops=5, of=0, fits=_halves)
_QUANTISED: Final = Moves(read=(1, 2), written=(0,), flops=6, of=0, fits=_halves)
_PLAIN: Final = Moves(read=(1,), written=(0,), flops=4, of=0, fits=_is_alike)

GATED_ACTIVATIONS: Final[Mapping[str, Moves]] = {
    **named(
        "_C sgl_kernel flashinfer aiter", "silu_and_mul gelu_and_mul gelu_tanh_and_mul", _GATED
    ),
    **named("_C", "mul_and_silu fatrelu_and_mul swigluoai_and_mul", _GATED),
    **named("_C", "silu_and_mul_quant", _QUANTISED),
    **named("_C", "gelu_new gelu_fast gelu_quick", _PLAIN),
}
"""Formula of each activation, of vLLM (`_C`), SGLang, FlashInfer and aiter."""
