"""Attention written out: the trace, the gain and the sentence."""

from __future__ import annotations

import pytest

from kernel_steps import Kernel, kernel, named, steps, tensors

HALF = "c10::BFloat16"
QUERY, KEY, SCORES = (HALF, 64, 2048, 64), (HALF, 64, 64, 2048), (HALF, 64, 2048, 2048)


def attention(head: int = 64) -> list[Kernel]:
    """Return the four kernels of attention, a millisecond each."""
    query, key, value = (HALF, 64, 2048, head), (HALF, 64, head, 2048), (HALF, 64, 2048, head)
    return [
        kernel("aten::bmm", "gemm_nt", 1_000, **tensors(query, key)),
        kernel("aten::div", "elementwise_kernel", 1_000, **tensors(SCORES, ("double",))),
        kernel("aten::_softmax", "softmax_warp_forward", 1_000, **tensors(SCORES)),
        kernel("aten::bmm", "gemm_nn", 1_000, **tensors(SCORES, value)),
    ]


def test_attention_written_out_gains_what_a_fused_kernel_does(said):
    [found, *_] = steps(attention() * 2).read().verdict().remedies
    # 69 GFLOP of two products; at 30 % of 312 TFLOP/s they take 0.73 ms, at 60 % 0.37 ms, of 4 ms
    assert (found.remedy, found.name) == ("fused_attention", "aten::_softmax")
    assert abs(found.gain.low - (1 - 0.73 / 4)) < 0.01, found
    assert abs(found.gain.high - (1 - 0.37 / 4)) < 0.01, found
    said(found.evidence)


def test_copies_that_lay_out_operands_may_go_too():
    heads = (HALF, 64, 2048, 64)
    copy = kernel("aten::copy_", "copy", 200, **tensors(heads, heads))
    other = kernel("aten::copy_", "copy", 200, **tensors((HALF, 8192, 8192), (HALF, 8192, 8192)))
    [found, *_] = steps([other, copy, copy, *attention(), copy] * 2).read().verdict().remedies
    assert found.remedy == "fused_attention"
    # at least the 4 ms of scores become 0.73 ms; at most they become 0.37 ms, with three copies
    assert abs(found.gain.low - (4 - 0.73) / 4.8) < 0.01, found
    assert abs(found.gain.high - (4.6 - 0.37) / 4.8) < 0.01, found


@pytest.mark.parametrize("is_masked", [True, False])
def test_a_mask_added_to_the_scores_is_named_in_the_advice(is_masked):
    product, scaled, *others = attention()
    mask = kernel("aten::add", "elementwise_kernel", 1_000, **tensors(SCORES, (HALF, 2048, 2048)))
    written = [product, scaled, *([mask] if is_masked else []), *others]
    [found, *_] = steps(written * 2).read().verdict().remedies
    assert found.remedy == "fused_attention"
    assert ("with its mask or bias as `attn_mask`" in found.advice) == is_masked


def test_heads_too_large_for_fused_kernels_are_left_alone():
    assert "fused_attention" not in named(steps(attention(head=512) * 2))


def test_a_softmax_without_a_product_of_it_is_left_alone():
    classifier = [
        kernel("aten::bmm", "gemm_nt", 1_000, **tensors(QUERY, KEY)),
        kernel("aten::_softmax", "softmax_warp_forward", 1_000, **tensors(SCORES)),
        kernel("aten::sum", "reduce_kernel", 1_000, **tensors(SCORES)),
    ]
    assert "fused_attention" not in named(steps(classifier * 2))


def test_the_backward_pass_of_attention_counts_with_its_four_products():
    transposed = (HALF, 64, 2048, 64)
    backward = [
        kernel("aten::bmm", "gemm_nt", 1_000, **tensors(QUERY, KEY)),
        kernel("aten::bmm", "gemm_tn", 1_000, **tensors(SCORES, transposed)),
        kernel("aten::_softmax_backward_data", "softmax", 1_000, **tensors(SCORES, SCORES)),
        kernel("aten::bmm", "gemm_nn", 1_000, **tensors(SCORES, transposed)),
        kernel("aten::bmm", "gemm_tn", 1_000, **tensors(SCORES, transposed)),
    ]
    [found, *_] = steps(backward * 2).read().verdict().remedies
    # 137 GFLOP of four products, and the scores again: 1.84 ms at 30 % of 312 TFLOP/s, of 5 ms
    assert found.remedy == "fused_attention"
    assert abs(found.gain.low - (1 - 1.84 / 5)) < 0.01, found


def test_operators_that_make_a_mask_belong_to_the_attention():
    product, scale, softmax, last = attention()
    mask = [
        kernel("aten::fill_", "fill", 5, **tensors(("bool", 2048, 2048))),
        kernel("aten::triu", "triu", 5, **tensors(("bool", 2048, 2048))),
        kernel("aten::masked_fill_", "masked", 1_000, **tensors(SCORES, ("bool", 2048, 2048))),
    ]
    [found, *_] = steps([product, scale, *mask, softmax, last] * 2).read().verdict().remedies
    assert found.remedy == "fused_attention"
    assert "in 7 kernels around" in found.evidence
    assert found.gain.low == pytest.approx(1 - 0.73 / 5.01, abs=0.01)


def test_a_long_operator_of_another_size_ends_an_attention():
    product, scale, softmax, last = attention()
    other = kernel("aten::mm", "gemm", 1_000, **tensors((HALF, 512, 512), (HALF, 512, 512)))
    assert "fused_attention" not in named(steps([product, other, scale, softmax, last] * 2))
