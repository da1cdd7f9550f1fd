"""Products of odd dimensions: the trace, the gain and the sentence."""

from __future__ import annotations

from kernel_steps import Kernel, kernel, named, steps, tensors

HALF = "c10::Half"
ODD = "cutlass_75_tensorop_f16_s1688gemm_f16_128x128_nn_align1"
EVEN = "cutlass_80_tensorop_f16_s16816gemm_f16_128x128_32x3_nn_align8"


def product(name: str, inner: int = 4095) -> Kernel:
    inputs = tensors((HALF, 4096, inner), (HALF, inner, 4096))
    return kernel("aten::mm", name, 2_000, **inputs)


def test_products_of_an_odd_dimension_gain_what_padded_ones_do(said):
    [found, *_] = steps([product(ODD)] * 4).read().verdict().remedies
    # 137 GFLOP; at 30 % of 312 TFLOP/s they take 1.47 ms, at 75 % 0.59 ms, of 2 ms
    assert (found.remedy, found.name) == ("unaligned_products", "aten::mm")
    assert abs(found.gain.low - (1 - 1.47 / 2)) < 0.01, found
    assert abs(found.gain.high - (1 - 0.59 / 2)) < 0.01, found
    said(found.evidence)


def test_products_with_tiles_for_all_multiprocessors_reach_half_of_the_peak():
    [found, *_] = steps([product(ODD)] * 4, numSms=108).read().verdict().remedies
    [small, *_] = steps([product(ODD)] * 4, numSms=1080).read().verdict().remedies
    assert abs(found.gain.low - (1 - 0.88 / 2)) < 0.01, found
    assert abs(small.gain.low - (1 - 1.47 / 2)) < 0.01, small


def test_products_of_kernels_that_read_eight_elements_are_left_alone():
    assert "unaligned_products" not in named(steps([product(EVEN)] * 4))


def test_products_of_even_dimensions_are_left_alone():
    assert "unaligned_products" not in named(steps([product(ODD, inner=4096)] * 4))
