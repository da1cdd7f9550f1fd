"""float32 work that autocast would run in 16 bit: the trace, the gain and the sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_steps import kernel, named, steps

if TYPE_CHECKING:
    from longpole.testing import TraceBuilder

V100 = "Tesla V100-SXM2-32GB"
VECTOR = "volta_sgemm_128x128_nn"
HALF = "volta_h884gemm_128x128_ldg8_nn"
ADD = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "at::detail::Array<char*, 3>>(int, at::native::CUDAFunctor_add<float>)"
)


def training(name: str, device: str = V100) -> TraceBuilder:
    """Build steps of products of 6 ms and of additions of 2 ms."""
    return steps([kernel("aten::mm", name, 6_000), kernel("aten::add", ADD, 2_000)] * 2, device)


def test_float32_of_a_device_without_tf32_gains_what_16_bit_does(said):
    [found, *_] = training(VECTOR).read().verdict().remedies
    assert found.remedy == "mixed_precision"
    # Products take half of 12 of 16 ms; at most 15.7 / 125 of it, and additions half of theirs.
    assert abs(found.gain.low - 6 / 16) < 0.01, found
    assert abs(found.gain.high - (12 * (1 - 15.7 / 125) + 2) / 16) < 0.01, found
    assert "float16, and a `GradScaler`" in found.advice
    said(found.evidence)


def test_it_is_an_alternative_to_tensor_cores_by_tf32():
    plan = training("ampere_sgemm_128x128_nn", "NVIDIA A100-SXM4-80GB").read().verdict().plan
    assert [(line.remedy, line.instead_of) for line in plan.lines] == [
        ("tensor_cores", ("mixed_precision",))
    ]


def test_products_of_16_bit_are_left_alone():
    assert "mixed_precision" not in named(training(HALF))


def test_devices_without_tensor_cores_are_left_alone():
    assert "mixed_precision" not in named(training(VECTOR, "Tesla P100-PCIE-16GB"))
