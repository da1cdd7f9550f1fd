"""Gradients filled with zeros: the trace, the gain and the sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steps import remedy_of, steps

if TYPE_CHECKING:
    from longpole.testing import TraceBuilder

GRADIENTS = 20
STEP_US = 1_000


def training(filling: str | None, n_backward: int = 1, around: str = "zero_grad"):
    """Return what fills a step: `zero_grad` with 10 us a gradient, and 10 us to add to it."""

    def fill(builder: TraceBuilder, begin: int) -> None:
        now = begin + 10
        if filling:
            for _ in range(GRADIENTS):
                builder.operator(filling, (now, now + 9))
                builder.launch("FillFunctor", call=(now + 2, now + 8), work=(now + 9, now + 11))
                now += 10
        builder.annotation(f"Optimizer.{around}#AdamW.{around}", (begin + 9, now + 1))
        for _ in range(GRADIENTS * n_backward):
            builder.operator("torch::autograd::AccumulateGrad", (now + 2, now + 11))
            builder.operator("aten::add_", (now + 2, now + 10))
            builder.launch("add", call=(now + 3, now + 9), work=(now + 10, now + 12))
            now += 10
        builder.launch("gemm", call=(now + 12, now + 20), work=(now + 21, begin + STEP_US - 10))
        builder.call("cudaDeviceSynchronize", (now + 21, begin + STEP_US - 5))

    return fill


def test_fills_go_with_their_launches_and_at_most_with_the_additions(said):
    found = remedy_of("zero_grad_fills", steps(STEP_US, training("aten::zero_")))
    assert abs(found.gain.value - 0.5 * 200 / STEP_US) < 0.02, found
    unmeasured = 0.3 * found.gain.value
    assert abs(found.gain.high - (0.7 * 200 + 160) / STEP_US - unmeasured) < 0.02, found
    assert found.name == "Optimizer.zero_grad#AdamW.zero_grad"
    said(found.advice)
    said(found.evidence)


def test_only_the_first_of_several_backward_passes_adds_to_zeros():
    one, two = (
        remedy_of("zero_grad_fills", steps(STEP_US, training("aten::zero_", number)))
        for number in (1, 2)
    )
    assert abs(one.gain.high - two.gain.high) < 0.02, (one, two)


def test_of_fills_of_many_gradients_at_once_the_host_time_may_stay():
    found = remedy_of("zero_grad_fills", steps(STEP_US, training("aten::_foreach_zero_")))
    assert found.gain.low < 0.02, found
    assert abs(found.gain.high - (200 + 160) / STEP_US) < 0.02, found


def test_gradients_that_are_dropped_are_left_alone():
    assert remedy_of("zero_grad_fills", steps(STEP_US, training(None))) is None


def test_other_work_inside_zero_grad_and_fills_elsewhere_are_left_alone():
    assert remedy_of("zero_grad_fills", steps(STEP_US, training("aten::mul_"))) is None
    elsewhere = training("aten::zero_", around="step")
    assert remedy_of("zero_grad_fills", steps(STEP_US, elsewhere)) is None


def test_fills_still_gain_after_a_graph_that_drops_only_their_delays():
    verdict = steps(STEP_US, training("aten::zero_")).read().verdict()
    names = [line.remedy for line in verdict.plan.lines]
    assert names == ["cuda_graph", "blocking_calls", "zero_grad_fills"]
    assert verdict.plan.lines[2].then.low > 0.02
