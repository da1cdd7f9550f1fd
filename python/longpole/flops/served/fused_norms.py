"""RMS normalisation of rows, fused with the addition of a residual or with quantisation.

Each element costs five operations: its square, the sum of squares, two products, and its share of
the root; an added residual one more, a quantised result one more.

Positions are those of `csrc/torch_bindings.cpp` and `_aiter_ops.py` of vLLM (00256d59), of
`sgl-kernel/csrc/common_extension.cc` of SGLang (0063ef14), of `aiter/ops/rmsnorm.py` (0bc300f7),
and of `tensorrt_llm/_torch/custom_ops/flashinfer_custom_ops.py`, checked in several versions. Those
ending in `_ck` are from a recording of vLLM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.flops.served.moves import Moves, named

if TYPE_CHECKING:
    from collections.abc import Mapping

# Arguments: out, input, weight.
_NORM: Final = Moves(read=(1, 2), written=(0,), flops=5, of=1)
# Arguments: input, weight; returns the result.
_RETURNING: Final = Moves(read=(0, 1), written=(), flops=5, of=0, returned=(0,))
# Arguments: input and residual, both in place, and weight.
_ADDING: Final = Moves(read=(0, 1, 2), written=(0, 1), flops=6, of=0)
# Arguments: out, input, residual, new residual, weight.
_ADDING_OUT: Final = Moves(read=(1, 2, 4), written=(0, 3), flops=6, of=1)
# Arguments: input, residual, weight; returns the result and the new residual.
_ADDING_RETURNING: Final = Moves(read=(0, 1, 2), written=(), flops=6, of=0, returned=(0, 0))

FUSED_NORMS: Final[Mapping[str, Moves]] = {
    **named("_C", "rms_norm", _NORM),
    **named("sgl_kernel flashinfer", "rmsnorm gemma_rmsnorm", _NORM),
    **named("aiter", "rmsnorm rms_norm_cu", _NORM),
    **named("aiter", "rms_norm rmsnorm2d_fwd", _RETURNING),
    **named("aiter", "fused_add_rms_norm_cu", _ADDING),
    **named("vllm", "rocm_aiter_rms_norm", _RETURNING),
    **named("trtllm", "flashinfer_rmsnorm flashinfer_gemma_rmsnorm", _RETURNING),
    **named("_C", "fused_add_rms_norm", _ADDING),
    **named("sgl_kernel flashinfer", "fused_add_rmsnorm gemma_fused_add_rmsnorm", _ADDING),
    **named("trtllm", "flashinfer_fused_add_rmsnorm flashinfer_gemma_fused_add_rmsnorm", _ADDING),
    **named("aiter", "add_rmsnorm rmsnorm2d_fwd_with_add rmsnorm2d_fwd_with_add_ck", _ADDING_OUT),
    **named("vllm", "rocm_aiter_rmsnorm2d_fwd_with_add", _ADDING_RETURNING),
    # (result, input, weight, scale), and with a residual that is updated in place
    **named("_C", "rms_norm_static_fp8_quant", Moves((1, 2, 3), (0,), 6, of=1)),
    **named("_C", "fused_add_rms_norm_static_fp8_quant", Moves((1, 2, 3, 4), (0, 2), 7, of=1)),
    # (result, input, weight, scale, eps, bound of the scale, residual)
    **named(
        "_C",
        "rms_norm_dynamic_per_token_quant rms_norm_per_block_quant",
        Moves((1, 2), (0, 3), 7, of=1, optional=(6,), updates=True),
    ),
}
"""Formula of each norm, of vLLM (`_C`, `vllm`), SGLang, FlashInfer, TensorRT-LLM and aiter."""
