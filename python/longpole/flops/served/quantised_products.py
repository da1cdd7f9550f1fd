"""Matrix products of servers: fp8, int8 and fp4 with scales, and weights of few bits.

Each multiply-add counts as two operations. Scales are read once. With weights of few bits the
products are computed in the type of the activations. Where a product returns a type that its
inputs do not show, its bytes are unknown, unless the activations have it, with two bytes or more.

Positions are those of `csrc/torch_bindings.cpp` of vLLM (00256d59; `csrc/libtorch_stable`, to which
the products moved, has the same), of its `csrc/rocm/torch_bindings.cpp` (001cd451), of
`sgl-kernel/csrc/common_extension.cc` of SGLang (0063ef14) and its `fp8_kernel.py`, of
`cpp/tensorrt_llm/thop` (`cublasScaledMM.cpp` at 0846822a, `fp8BlockScalingGemm.cpp`) and
`torch_custom_ops.py` (a371b9f4) of TensorRT-LLM, whose older `nvfp4_gemm` has a flag before the
type of its result, and of `aiter/ops/gemm_op_a8w8.py` (0006ebde), `gemm_op_a4w4.py` (010bca68) and
`gemm_op_a16w16.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final, Literal

from longpole.flops.dtypes import item_bytes, scalar_type
from longpole.flops.tensors import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from longpole.flops.tensors import Call, Tensor

_FP4: Final = "fp4"
_PACKED: Final = 2
_MATRIX: Final = 2
_WIDE: Final = 2


@dataclass(frozen=True, slots=True)
class _Product:
    """Positions of the arguments of a product.

    The right matrix is `[k, n]`, or `[n, k]` if `right` is `"nk"`. `out` is the position of the
    result, and `result` that of its type, for results that are not among the arguments. `packed`
    matrices hold two fp4 numbers in each byte. `written` is the size of the elements of a result
    that always has the same type.
    """

    first: int = 0
    right: Literal["kn", "nk"] = "nk"
    out: int | None = None
    result: int | None = None
    others: tuple[int, ...] = ()
    packed: bool = False
    written: int | None = None

    def __call__(self, call: Call) -> Work | None:
        """Count the work; None if the shapes do not fit."""
        left, right = call.tensor(self.first), call.tensor(self.first + 1)
        if left is None or right is None or min(len(left.shape), len(right.shape)) < _MATRIX:
            return None
        inner, columns = right.shape[-2:] if self.right == "kn" else right.shape[:-3:-1]
        batch = right.shape[:-2]
        if left.shape[-1] != inner or (batch and batch != left.shape[:-2]):
            return None
        scale = _PACKED if self.packed else 1
        flops = 2 * scale * left.numel * columns
        dtype = _FP4 if self.packed else left.dtype
        n_bytes = self._bytes(call, left, right, prod(left.shape[:-1]) * columns)
        return Work(flops, n_bytes, dtype, is_matrix=True)

    def _bytes(self, call: Call, left: Tensor, right: Tensor, n_out: int) -> int | None:
        others = [tensor for place in self.others if (tensor := call.tensor(place)) is not None]
        return _sum_bytes([left, right, *others], n_out, self._out_bytes(call, left, n_out))

    def _out_bytes(self, call: Call, left: Tensor, n_out: int) -> int | None:
        """Return the size of an element of the result; None if unknown."""
        out = None if self.out is None else call.tensor(self.out)
        if out is not None and out.numel == n_out:
            return out.item_bytes
        number = None if self.result is None else call.value(self.result)
        if type(number) is int:
            return item_bytes(scalar_type(number, left.dtype))
        is_wide = (left.item_bytes or 0) >= _WIDE
        return self.written or (left.item_bytes if is_wide and self.out is None else None)


def _sum_bytes(read: Sequence[Tensor], n_out: int, written: int | None) -> int | None:
    sizes = [tensor.item_bytes for tensor in read]
    if written is None or None in sizes:
        return None
    pairs = zip(read, sizes, strict=True)
    return sum(tensor.stored * (size or 0) for tensor, size in pairs) + n_out * written


def _few_bits(call: Call) -> Work | None:
    """Count Marlin's products: their arguments contain the numbers m, n and k in a row.

    Left is `[m, k]`; the weights are packed in an order of their own, but each is read once.
    """
    left, weights = call.tensor(0), call.tensor(2)
    if left is None or weights is None or len(left.shape) != _MATRIX:
        return None
    rows, inner = left.shape
    values = [call.value(place) for place in range(len(call.values))]
    columns = _columns(values, rows, inner)
    if columns is None:
        return None
    scales = [call.tensor(3), call.tensor(4)]
    read = [left, weights, *(it for it in scales if it is not None and len(it.shape) == _MATRIX)]
    n_bytes = _sum_bytes(read, rows * columns, left.item_bytes)
    return Work(2 * rows * columns * inner, n_bytes, left.dtype, is_matrix=True)


def _columns(values: Sequence[Any], rows: int, inner: int) -> int | None:
    """Return n of the first three numbers in a row that are m, n and k.

    Examples
    --------
    >>> _columns([None, 7, 16, 4096, 512, True], 16, 512), _columns([16, 512], 16, 512)
    (4096, None)
    """
    threes = zip(values, values[1:], values[2:], strict=False)
    found = (n for m, n, k in threes if (m, k) == (rows, inner) and type(n) is int and n > 0)
    return next(found, None)


def _packed_weights(call: Call, *, per_column: int) -> Work | None:
    """Count `gptq_gemm(a, weights [k / packed, n], ..)` and `awq_gemm(a, weights [k, n / 8], ..)`.

    Parameters
    ----------
    call
        The call.
    per_column
        Number of columns in one column of the packed weights.
    """
    left, weights = call.tensor(0), call.tensor(1)
    if left is None or weights is None or len(weights.shape) != _MATRIX or not left.shape:
        return None
    columns = weights.shape[1] * per_column
    scales = [tensor for place in (2, 3) if (tensor := call.tensor(place)) is not None]
    n_out = prod(left.shape[:-1]) * columns
    n_bytes = _sum_bytes([left, weights, *scales], n_out, left.item_bytes)
    return Work(2 * left.numel * columns, n_bytes, left.dtype, is_matrix=True)


def _deep_gemm(call: Call) -> Work | None:
    """Count `deep_gemm_fp8_fp8_bf16_nt(A [m, k], As, B [n, k], Bs, C [m, n])`."""
    left, right, out = call.tensor(0), call.tensor(2), call.tensor(4)
    if left is None or right is None or out is None:
        return None
    if len(left.shape) != _MATRIX or left.shape[-1] != right.shape[-1]:
        return None
    scales = [tensor for place in (1, 3) if (tensor := call.tensor(place)) is not None]
    n_bytes = _sum_bytes([left, right, *scales], out.numel, out.item_bytes)
    return Work(2 * left.numel * right.shape[0], n_bytes, left.dtype, is_matrix=True)


_OUT_FIRST: Final = _Product(1, right="kn", out=0, others=(3, 4))
_SCALED: Final = _Product(right="kn", result=4, others=(2, 3))
_LINEAR: Final = _Product(others=(2,))
_BLOCKS: Final = _Product(others=(2, 3))
_BLOCKS_OUT: Final = _Product(out=4, others=(2, 3))
_BLOCKS_TYPED: Final = _Product(result=5, others=(2, 3))
_BF16: Final = 2

QUANTISED_PRODUCTS: Final[Mapping[str, Callable[[Call], Work | None]]] = {
    # vLLM: (out, a [m, k], b [k, n], scales of a, scales of b)
    "_C::cutlass_scaled_mm": _OUT_FIRST,
    "_C::cutlass_scaled_mm_azp": _OUT_FIRST,
    "_C::cutlass_scaled_fp4_mm": _Product(1, out=0, others=(3, 4), packed=True),
    "_C::dsv3_fused_a_gemm": _Product(1, right="kn", out=0),
    "_C::gptq_marlin_gemm": _few_bits,
    "_C::marlin_gemm": _few_bits,
    "_C::gptq_gemm": lambda call: _packed_weights(call, per_column=1),
    "_C::awq_gemm": lambda call: _packed_weights(call, per_column=8),
    # (weight [n, k], activations [m, k], bias), without a bias in older versions
    "_rocm_C::LLMM1": _Product(),
    "_rocm_C::wvSplitK": _LINEAR,
    "_rocm_C::wvSplitKrc": _LINEAR,
    "_rocm_C::wvSplitKQ": _Product(out=3, others=(4, 5)),
    # the right matrix is a weight [n, k]
    "vllm::rocm_unquantized_gemm": _LINEAR,
    "vllm::w8a8_triton_block_scaled_mm_func": _BLOCKS_TYPED,
    "vllm::rocm_aiter_gemm_w8a8": _BLOCKS_TYPED,
    "vllm::rocm_aiter_gemm_w8a8_blockscale": _BLOCKS,
    # SGLang: (a [m, k], b [k, n], scales of a, scales of b, type of the result)
    "sgl_kernel::fp8_scaled_mm": _SCALED,
    "sgl_kernel::int8_scaled_mm": _SCALED,
    "sgl_kernel::fp8_blockwise_scaled_mm": _SCALED,
    "sgl_kernel::bmm_fp8": _Product(right="kn", out=2),
    "sgl_kernel::cutlass_scaled_fp4_mm": _Product(1, out=0, others=(3, 4), packed=True),
    "sgl_kernel::dsv3_fused_a_gemm": _Product(1, right="kn", out=0),
    "sgl_kernel::dsv3_router_gemm": _Product(1, out=0),
    "sgl_kernel::gptq_marlin_gemm": _few_bits,
    "sgl_kernel::gptq_gemm": lambda call: _packed_weights(call, per_column=1),
    # DeepGEMM: (a [m, k], scales of a, b [n, k], scales of b, out)
    "sglang::deep_gemm_fp8_fp8_bf16_nt": _deep_gemm,
    # TensorRT-LLM
    "trtllm::cublas_mm": _Product(right="kn", result=3),
    "trtllm::cublas_scaled_mm": _Product(right="kn", result=5, others=(2, 3)),
    "trtllm::fp8_block_scaling_gemm": _Product(others=(2, 3), written=_BF16),
    "trtllm::fp8_block_scaling_bmm": _Product(result=4, others=(2, 3), written=_BF16),
    "trtllm::fp8_block_scaling_bmm_out": _Product(out=4, others=(2, 3)),
    **dict.fromkeys(
        ("trtllm::nvfp4_gemm", "trtllm::nvfp4_gemm_cublaslt"),
        _Product(others=(2, 3), packed=True, result=5),
    ),
    # aiter
    "aiter::gemm_a16w16": _Product(result=3, others=(2,)),
    "aiter::gemm_a8w8": _BLOCKS_TYPED,
    "aiter::gemm_a8w8_ck": _BLOCKS_OUT,
    "aiter::gemm_a8w8_blockscale_ck": _BLOCKS_OUT,
    "aiter::gemm_a8w8_blockscale": _BLOCKS,
    "aiter::gemm_a4w4": _Product(out=4, others=(2, 3), packed=True),
    "aiter::gemm_a4w4_asm": _Product(out=4, others=(2, 3), packed=True),
    "aiter::gemm_a4w4_blockscale": _Product(out=4, others=(2, 3), packed=True),
}
"""Formula of each product."""
