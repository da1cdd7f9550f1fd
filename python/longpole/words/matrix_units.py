"""Which units of a device a product or a convolution runs on, by the name of its kernel."""

from __future__ import annotations

import re
from typing import Final

ON_TENSOR_CORES: Final = (
    r"tensorop|s16816|s1688|s884|h16816|h1688|h884|i16816|i16832|i8816|tf32|gmma|hmma|imma|nvjet"
    r"|_MI\d+x\d+x|_mfma|xmma_.*(f16f16|bf16bf16|i8i8|e4m3)"
)
"""Kernels that run on tensor or matrix cores."""

_FLOAT32: Final = r"sgemm|_ffma_|f32f32_f32f32_f32|scudnn|simt"
ON_VECTOR_UNITS: Final = rf"{_FLOAT32}|dgemm|gemv|gemmk1|dot_kernel"
"""Kernels that run on the vector units, unless the name also has a mark of tensor cores."""

_TENSOR: Final = re.compile(ON_TENSOR_CORES)
_VECTOR: Final = re.compile(_FLOAT32)
_TF32: Final = re.compile(r"tf32|s1688")


def uses_tensor_cores(kernel: str) -> bool:
    """Whether a kernel runs on tensor or matrix cores.

    Examples
    --------
    >>> uses_tensor_cores("ampere_tf32_s1688gemm_128x128_nn"), uses_tensor_cores("copy_kernel")
    (True, False)
    """
    return _TENSOR.search(kernel) is not None


def is_float32_product(kernel: str) -> bool:
    """Whether a kernel is a product or a convolution of float32 on the vector units.

    Examples
    --------
    >>> is_float32_product("volta_sgemm_128x64_nn"), is_float32_product("volta_h884gemm_128x64")
    (True, False)
    """
    return _VECTOR.search(kernel) is not None and not uses_tensor_cores(kernel)


def may_use_tf32(kernel: str) -> bool:
    """Whether a kernel rounds float32 to TF32, by the shape of its products if by nothing else."""
    return _TF32.search(kernel) is not None
