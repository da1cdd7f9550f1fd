"""Elementwise kernels in a row: the trace, the gain and the sentence."""

from __future__ import annotations

from kernel_steps import kernel, named, steps, tensors

WIDE = ("float", 8192, 8192)


def over(operator: str, n_inputs: int = 1):
    """Return a kernel that reads and writes 268 MB each at 1.6 TB/s."""
    return kernel(operator, operator, 168 * (n_inputs + 1), **tensors(*[WIDE] * n_inputs))


def test_kernels_in_a_row_gain_what_one_pass_over_memory_does(said):
    row = [over("aten::mul"), over("aten::tanh"), over("aten::add"), over("aten::sigmoid")]
    total = kernel("aten::sum", "reduce_kernel", 168, **tensors(WIDE))
    [found, *_] = steps([*row, total] * 2).read().verdict().remedies
    # At least, one pass of 336 us at 0.85 of the bandwidth instead of 1,344 us; at most, the sums
    # are part of it, and one more pass follows the first of them.
    assert (found.remedy, found.name) == ("fused_pointwise", "aten::mul")
    assert abs(found.gain.low - (1_344 - 336 / 0.85) / 1_512) < 0.01, found
    assert abs(found.gain.high - (1 - 2 * 336 / 3_024)) < 0.01, found
    said(found.evidence)


def test_one_operator_over_many_tensors_is_left_alone():
    assert "fused_pointwise" not in named(steps([over("aten::mul_")] * 8))


def test_a_row_ends_at_a_product():
    row = [over("aten::mul"), over("aten::tanh"), over("aten::add")]
    product = kernel("aten::mm", "gemm", 500, **tensors(WIDE, WIDE))
    mean = kernel("aten::mean", "reduce_kernel", 168, **tensors(WIDE))
    [found, *_] = steps([*row, product, mean, product] * 2).read().verdict().remedies
    assert found.remedy == "fused_pointwise"
    # the mean after the product is not next to the row
    assert abs(found.gain.high - (1_008 - 336) / (1_008 + 168 + 2 * 500)) < 0.01, found


def test_two_kernels_between_products_are_left_alone():
    product = kernel("aten::mm", "gemm", 500, **tensors(WIDE, WIDE))
    row = [over("aten::mul"), over("aten::tanh"), product]
    assert "fused_pointwise" not in named(steps(row * 4))
