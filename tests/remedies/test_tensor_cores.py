"""Products of float32 without tensor cores: the trace, the gain and the sentence."""

from __future__ import annotations

from kernel_steps import A100, kernel, named, steps, tensors
from longpole.remedies.gains import beyond
from longpole.testing import TraceBuilder

VECTOR = "ampere_sgemm_128x128_nn"
TF32 = "ampere_tf32_s1688gemm_128x128_nn"


def products(name: str, dtype: str = "float", device: str = A100) -> TraceBuilder:
    """Build steps of four products of 4096 x 4096, 8 ms each."""
    square = tensors((dtype, 4096, 4096), (dtype, 4096, 4096))
    return steps([kernel("aten::mm", name, 8_000, **square)] * 4, device)


def test_products_of_float32_gain_what_tensor_cores_do(said):
    [found, *_] = products(VECTOR).read().verdict().remedies
    # 137 GFLOP in 8 ms; TF32 at 60 % of 156 TFLOP/s takes 1.47 ms, 16 bit at 70 % of 312 0.63 ms,
    # and a cast of 16.8 million elements at 80 % of 2,039 GB/s 0.06 ms.
    assert (found.remedy, found.name) == ("tensor_cores", "aten::mm")
    assert abs(found.gain.low - (1 - 1.47 / 8)) < 0.01, found
    assert abs(found.gain.high - beyond(1 - 0.691 / 8)) < 0.001, found
    said(found.advice)
    said(found.evidence)


def test_products_on_tensor_cores_are_left_alone():
    assert "tensor_cores" not in named(products(TF32))


def test_products_of_float64_are_left_alone():
    assert "tensor_cores" not in named(products("ampere_dgemm_128x128_nn", "double"))


def test_devices_without_tf32_are_left_alone():
    assert "tensor_cores" not in named(
        products("volta_sgemm_128x128_nn", device="Tesla V100-SXM2-32GB")
    )


def graphed(kernel_name: str) -> TraceBuilder:
    """Build steps that replay a graph of four kernels, 2 ms each."""
    builder = TraceBuilder().header(deviceProperties=[{"id": 0, "name": A100}])
    for number in range(4):
        start_us = number * 9_000.0
        builder.step(number, (start_us, start_us + 8_900))
        builder.call("cudaGraphLaunch", (start_us + 10, start_us + 30), correlation=number + 1)
        for place in range(4):
            work = (start_us + 40 + 2_000 * place, start_us + 2_040 + 2_000 * place)
            builder.kernel(kernel_name, work, correlation=number + 1)
        builder.call("cudaDeviceSynchronize", (start_us + 40, start_us + 8_050))
    return builder


def test_products_in_a_graph_are_found_by_their_names():
    [found, *_] = graphed(VECTOR).read().verdict().remedies
    assert found.remedy == "tensor_cores"
    # Without shapes, 70 % of the vector peak is computed: 19.5 of 156 TFLOP/s at 60 %.
    assert abs(found.gain.low - 8 / 9 * (1 - 0.7 * 19.5 / (0.6 * 156))) < 0.02, found
    assert "tensor_cores" not in named(graphed(TF32))
