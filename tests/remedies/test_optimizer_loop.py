"""The loop of an optimizer over its parameters: the trace, the gain and the sentence."""

from __future__ import annotations

from longpole.testing import TraceBuilder


def optimizer(n_parameters: int, operators: tuple[str, ...]) -> TraceBuilder:
    """Build 3 steps of 2 ms of forward pass, then an update with some operators a parameter."""
    builder, now = TraceBuilder(), 0
    for number in range(3):
        first = now
        builder.operator("aten::linear", (now, now + 100))
        builder.launch("gemm", call=(now + 10, now + 20), work=(now + 30, now + 130))
        now += 200
        start = now
        for _ in range(n_parameters):
            for name in operators:
                builder.operator(name, (now, now + 9))
                builder.launch("elementwise", call=(now + 2, now + 8), work=(now + 9, now + 11))
                now += 10
        builder.annotation("Optimizer.step#AdamW.step", (start, now))
        builder.step(number, (first, now))
    return builder


def test_a_loop_over_parameters_saves_what_an_update_at_once_does(said):
    [found, *_] = (
        optimizer(100, ("aten::mul_", "aten::lerp_", "aten::addcdiv_")).read().verdict().remedies
    )
    assert (found.remedy, found.name) == ("optimizer_loop", "Optimizer.step#AdamW.step")
    assert 0.7 < found.gain.low <= found.gain.high < 0.95, found
    said(found.advice)
    said(found.evidence)


def test_an_optimizer_that_updates_all_at_once_is_left_alone():
    verdict = optimizer(60, ("aten::_foreach_mul_",)).read().verdict()
    assert "optimizer_loop" not in {row.remedy for row in verdict.remedies}


def test_a_step_of_few_launches_is_left_alone():
    verdict = optimizer(10, ("aten::mul_",)).read().verdict()
    assert "optimizer_loop" not in {row.remedy for row in verdict.remedies}
