"""Quantisation of activations to fp8, int8 or fp4, by tensor, token or group.

An element costs two operations, a product and the limit, and one more for its part in the maximum
if the scale is computed.

Positions are those of `csrc/torch_bindings.cpp` of vLLM (00256d59), of
`sgl-kernel/csrc/common_extension.cc` of SGLang (0063ef14), and of `aiter/ops/quant.py` (0164c2ff).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.flops.served.moves import Moves, named

if TYPE_CHECKING:
    from collections.abc import Mapping

# Arguments: result, input, scale.
_STATIC: Final = Moves(read=(1, 2), written=(0,), flops=2, of=1)
_DYNAMIC: Final = Moves(read=(1,), written=(0, 2), flops=3, of=1)
# Arguments: input, result, scale.
_INPUT_FIRST: Final = Moves(read=(0,), written=(1, 2), flops=3, of=0)

QUANTISATION: Final[Mapping[str, Moves]] = {
    **named("_C", "static_scaled_fp8_quant static_scaled_int8_quant", _STATIC),
    **named("_C", "dynamic_scaled_fp8_quant dynamic_per_token_scaled_fp8_quant", _DYNAMIC),
    **named("_C", "dynamic_scaled_int8_quant", _DYNAMIC),
    **named("_C sgl_kernel", "scaled_fp4_quant", Moves((1, 3), (0, 2), 3, of=1)),
    **named("_C", "per_token_group_fp8_quant per_token_group_quant_int8", _INPUT_FIRST),
    **named("sgl_kernel", "sgl_per_token_quant_fp8 sgl_per_tensor_quant_fp8", _INPUT_FIRST),
    **named("sgl_kernel", "sgl_per_token_group_quant_fp8", _INPUT_FIRST),
    **named("sgl_kernel", "sgl_per_token_group_quant_int8", _INPUT_FIRST),
    **named("aiter", "static_per_tensor_quant", _STATIC),
    **named("aiter", "dynamic_per_tensor_quant dynamic_per_token_scaled_quant", _DYNAMIC),
}
"""Formula of each quantisation, of vLLM (`_C`), SGLang and aiter."""
