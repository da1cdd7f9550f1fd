"""Copies to another layout before products: the trace, the gain and the sentence."""

from __future__ import annotations

from typing import Any

from kernel_steps import kernel, named, steps, tensors

HALF = "c10::BFloat16"
MATRIX = (HALF, 8, 1024, 2048)
DENSE, SWAPPED = [2097152, 2048, 1], [2097152, 1, 1024]
PRODUCT = kernel("aten::bmm", "gemm", 500, **tensors(MATRIX, (HALF, 8, 2048, 1024)))


def copy(*inputs: tuple[Any, ...], strides: list[list[int]] | None = None):
    return kernel("aten::copy_", "elementwise_kernel", 700, **tensors(*inputs, strides=strides))


def test_transposed_copies_before_a_product_are_not_needed(said):
    swap = copy(MATRIX, MATRIX, strides=[DENSE, SWAPPED])
    [found, *_] = steps([swap, PRODUCT] * 3).read().verdict().remedies
    assert (found.remedy, found.name) == ("layout_copies", "aten::copy_")
    assert abs(found.gain.value - 7 / 12) < 0.02, found
    said(found.evidence)


def test_a_copy_to_another_type_is_left_alone():
    cast = copy(MATRIX, ("float", *MATRIX[1:]), strides=[DENSE, SWAPPED])
    assert "layout_copies" not in named(steps([cast, PRODUCT] * 3))


def test_a_copy_that_reorders_heads_is_left_alone():
    heads = (HALF, 8, 16, 1024, 128)
    strides = [[2097152, 131072, 128, 1], [2097152, 128, 2048, 1]]
    assert "layout_copies" not in named(steps([copy(heads, heads, strides=strides), PRODUCT] * 3))


def test_a_copy_for_something_else_than_a_product_is_left_alone():
    swap = copy(MATRIX, MATRIX, strides=[DENSE, SWAPPED])
    total = kernel("aten::sum", "reduce_kernel", 500, **tensors(MATRIX))
    assert "layout_copies" not in named(steps([swap, total] * 3))
