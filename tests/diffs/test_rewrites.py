"""Which traces of a remedy show that it was applied, and which program is another one."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

import longpole
from kernel_steps import Kernel, kernel, steps, tensors
from longpole.diffs.matching import is_fused
from longpole.diffs.predictions import predictions
from longpole.diffs.rewrites import Contents, has_signature, same_kernels

HALF = "c10::BFloat16"
QUERY, KEY, VALUE = (HALF, 64, 2048, 64), (HALF, 64, 64, 2048), (HALF, 64, 2048, 64)
SCORES = (HALF, 64, 2048, 2048)


def attention() -> list[Kernel]:
    """Return attention that writes its scores to memory."""
    return [
        kernel("aten::bmm", "gemm_nt", 1_000, **tensors(QUERY, KEY)),
        kernel("aten::div", "elementwise_kernel", 1_000, **tensors(SCORES, ("double",))),
        kernel("aten::_softmax", "softmax_warp_forward", 1_000, **tensors(SCORES)),
        kernel("aten::bmm", "gemm_nn", 1_000, **tensors(SCORES, VALUE)),
    ]


def fused(name: str = "flash_fwd_kernel", length: int = 600) -> list[Kernel]:
    """Return an operator that replaces it."""
    return [kernel("aten::_flash_attention_forward", name, length)]


def contents(n_graph_launches: float = 0.0, **times_ns: float) -> Contents:
    """Return a step with a kernel of each name."""
    return Contents({name: (1.0, time) for name, time in times_ns.items()}, n_graph_launches)


def test_fused_attention_is_recognised_though_nothing_corresponds(said):
    found = longpole.diff(
        steps(attention() * 2, number=6).read(), steps(fused() * 2, number=6).read()
    )
    assert (found.is_related, found.is_one_program) == (False, True)
    assert found.verdict == "improvement"
    [row] = found.predictions
    assert row.remedy == "fused_attention"
    said.within(found.sentence)


@pytest.mark.parametrize(
    "other",
    [
        fused("sort_kernel"),  # no attention
        [*fused(), kernel("aten::conv2d", "conv2d_kernel", 900)],  # with work of its own
        fused(length=3_900),  # which gains too little
    ],
)
def test_what_a_fused_kernel_does_not_explain_is_another_program(other):
    found = longpole.diff(steps(attention() * 2).read(), steps(other * 2).read())
    assert (found.verdict, found.is_one_program, found.predictions) == ("inconclusive", False, ())
    assert "two different programs" in found.sentence


def test_a_graph_replays_the_kernels_of_the_base():
    base = contents(gemm_a=50.0, relu=10.0, softmax=20.0)
    assert has_signature("cuda_graph", base, contents(1.0, gemm_a=50.0, relu=10.0, softmax=20.0))
    assert not has_signature("cuda_graph", base, contents(gemm_a=50.0, relu=10.0, softmax=20.0))
    assert not has_signature("cuda_graph", base, contents(1.0, gemm_b=50.0, relu=10.0))


def test_compiled_operators_leave_the_products_as_they_were():
    base = contents(gemm_a=50.0, relu_elementwise=40.0)
    for remedy in ("fused_pointwise", "graph_breaks"):
        assert has_signature(remedy, base, contents(gemm_a=48.0, triton_poi_fused_relu_0=9.0))
        assert not has_signature(remedy, base, contents(gemm_b=48.0, triton_poi_fused_relu_0=9.0))
        assert not has_signature(remedy, base, contents(gemm_a=48.0, relu_elementwise=9.0))


ELEMENTS = ("mul", "sub", "exp", "add")
FUSED_ELEMENTS = "triton_poi_fused_add_exp_mul_rsub_sub_0"


def elementwise() -> list[Kernel]:
    """Return operators that each pass over the same elements."""
    values = ((HALF, 8192, 8192),) * 2
    return [
        kernel(f"aten::{word}", f"vectorized_elementwise_kernel<{word}>", 504, **tensors(*values))
        for word in ELEMENTS * 2
    ]


def compiled(name: str = FUSED_ELEMENTS, length: int = 1_200) -> list[Kernel]:
    """Return a kernel of `torch.compile` that replaces them."""
    return [kernel(name, name, length)]


def test_a_step_without_products_is_recognised_by_the_names_of_its_fused_kernels(said):
    found = longpole.diff(steps(elementwise(), number=6).read(), steps(compiled(), number=6).read())
    assert (found.similarity, found.is_one_program, found.is_stated) == (0, True, False)
    assert found.verdict == "improvement"
    said.within(found.sentence)


@pytest.mark.parametrize(
    "other",
    [
        compiled("triton_poi_fused_gelu_native_layer_norm_0"),  # other operators
        compiled("triton_poi_fused_add_0"),  # few of the operators
        compiled("triton_my_kernel_0"),  # not by the compiler
        [*compiled(), kernel("aten::sort", "sort_kernel", 1_000)],  # with work of its own
        compiled(length=3_600),  # which gains too little
    ],
)
def test_fused_kernels_with_other_names_or_gains_are_another_program(other):
    found = longpole.diff(steps(elementwise(), number=6).read(), steps(other, number=6).read())
    assert (found.verdict, found.is_one_program, found.predictions) == ("inconclusive", False, ())


def test_without_products_more_than_the_possible_gain_is_another_program():
    row = {"remedy": "fused_pointwise", "is_listed": True, "surely_saves": True, "effort": "code"}
    remedy = SimpleNamespace(**row, gain=SimpleNamespace(duration_ns=1_000, low=0.2, high=0.3))
    base = SimpleNamespace(status="ok", remedies=[remedy])
    without = SimpleNamespace(status="ok", remedies=[])
    old = replace(contents(elementwise_kernel=50.0), operators={"mul": 50.0})
    sides = old, contents(triton_poi_fused_mul_0=20.0)
    for measured, number in ((0.3, 1), (0.5, 0)):
        found = predictions(base, without, measured, contents=sides, is_rewritten=True)
        assert len(found) == number


def test_the_caller_can_say_that_both_sides_are_the_same_program(said):
    sides = (
        steps(attention() * 2, number=6).read(),
        steps(fused("sort_kernel") * 2, number=6).read(),
    )
    assert longpole.diff(*sides).verdict == "inconclusive"
    found = longpole.diff(*sides, is_same_program=True)
    assert (found.verdict, found.is_one_program, found.is_stated) == ("improvement", True, True)
    said.within(found.sentence)
    alike = longpole.diff(sides[0], sides[0], is_same_program=True)
    assert not alike.is_stated


def test_steps_of_another_batch_size_are_not_compared_by_length_without_a_warning():
    def batch(size):
        values, weights = (HALF, size, 4096), (HALF, 4096, 4096)
        product = kernel("aten::mm", "gemm", 30 * size, **tensors(values, weights))
        return steps([product, kernel("aten::relu", "relu", 500, **tensors(values))], number=6)

    small, same, large = (batch(size).read() for size in (64, 64, 128))
    told = "Most of the change is of work with other shapes."
    assert told in str(longpole.diff(small, large).blocks()[-1])
    assert told not in str(longpole.diff(small, same).blocks()[-1])


def test_most_remedies_leave_no_traces():
    assert has_signature("small_batch", contents(gemm=1.0), contents(gemm=1.0)) is None


def test_the_same_kernels_are_one_program():
    base = contents(gemm=50.0, relu=10.0)
    assert same_kernels(base, contents(gemm=52.0, relu=9.5))
    assert not same_kernels(base, contents(gemm=52.0, sort=9.5))
    assert not same_kernels(contents(), contents())


def test_a_remedy_with_a_signature_that_is_missing_was_not_applied():
    row = {"remedy": "fused_attention", "is_listed": True, "surely_saves": True, "effort": "code"}
    remedy = SimpleNamespace(**row, gain=SimpleNamespace(duration_ns=1_000, low=0.2, high=0.3))
    base = SimpleNamespace(status="ok", remedies=[remedy])
    without = SimpleNamespace(status="ok", remedies=[])
    old, new = contents(softmax=50.0, conv=10.0), contents(conv=10.0)
    assert predictions(base, without, 0.25, contents=(old, new)) == ()
    attended = contents(flash_fwd=20.0, conv=10.0)
    [found] = predictions(base, without, 0.25, contents=(old, attended))
    assert found.remedy == "fused_attention"


@pytest.mark.parametrize(
    ("parts", "whole", "expected"),
    [
        (["mul", "relu"], "triton_poi_fused_mul_relu_0", True),
        (["bmm", "softmax_warp_forward"], "flash_fwd_kernel", True),
        (["bmm", "add"], "flash_fwd_kernel", False),
        (["aten::to", "aten::copy_"], "aten::detach", False),
        (["Memcpy DtoH", "Memcpy DtoH"], "Memcpy DtoD", False),
    ],
)
def test_only_a_name_shows_that_work_was_fused(parts, whole, expected):
    assert is_fused(parts, whole) == expected
