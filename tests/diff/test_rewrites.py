"""Which traces of a remedy show that it was applied, and which program is another one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import longpole
from kernel_steps import Kernel, kernel, steps, tensors
from longpole.analyses.diff.matching import is_fused
from longpole.analyses.diff.predictions import predictions
from longpole.analyses.diff.rewrites import Contents, has_signature, same_kernels

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


def test_fused_attention_is_recognised_though_nothing_corresponds():
    found = longpole.diff(
        steps(attention() * 2, number=6).read(), steps(fused() * 2, number=6).read()
    )
    assert (found.is_related, found.is_one_program) == (False, True)
    assert found.verdict == "improvement"
    [row] = found.predictions
    assert row.remedy == "fused_attention"
    assert "Remedy fused_attention was applied: " in found.sentence


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


def test_most_remedies_leave_no_traces():
    assert has_signature("small_batch", contents(gemm=1.0), contents(gemm=1.0)) is None


def test_the_same_kernels_are_one_program():
    base = contents(gemm=50.0, relu=10.0)
    assert same_kernels(base, contents(gemm=52.0, relu=9.5))
    assert not same_kernels(base, contents(gemm=52.0, sort=9.5))
    assert not same_kernels(contents(), contents())


def test_a_remedy_with_a_signature_that_is_missing_was_not_applied():
    row = {"remedy": "fused_attention", "gain_then": 0.2, "gain_ns": 1_000, "effort": "code"}
    remedy = SimpleNamespace(**row, gain_low=0.2, gain_high=0.3)
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
