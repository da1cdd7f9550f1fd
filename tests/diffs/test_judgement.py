"""Whether a change matters, by its interval and the gate."""

from __future__ import annotations

import numpy as np

from longpole.diffs.judgement import (
    Judgement,
    is_beyond_noise,
    judge_cost,
    judge_runs,
    judge_step,
    judge_steps,
    moderated_t,
)


def test_noise_alone_seldom_stands_out_and_a_change_does():
    dice = np.random.default_rng(0)
    n_false = n_found = 0
    for _ in range(200):
        base, new = (1_000 * (1 + 0.05 * dice.standard_normal((30, 6))) for _ in range(2))
        n_false += any(is_beyond_noise(t, 12, 30) for t in moderated_t(base, new))
        new[7] *= 1.25
        n_found += is_beyond_noise(moderated_t(base, new)[7], 12, 30)
    assert n_false <= 0.08 * 200
    assert n_found >= 0.95 * 200
    assert moderated_t(base[:, :1], new[:, :1]) is None


def test_the_verdict_is_held_against_the_gate():
    steps = dict(enumerate([100.0, 101, 99, 100, 102, 98, 100, 101]))

    def judged(factor, gate=0.03):
        new = {step: factor * length for step, length in steps.items()}
        return judge_steps(steps, new, gate, change=factor - 1).outcome

    assert [judged(factor) for factor in (1.0, 1.01, 1.2, 0.8)] == [
        "neutral",
        "neutral",
        "regression",
        "improvement",
    ]
    assert judge_steps({1: 1.0}, {1: 2.0}, 0.03, change=1.0).outcome == "inconclusive"
    assert judge_runs([100, 101], [150, 151], 0.03, change=0.5).outcome == "inconclusive"
    apart = judge_runs([100, 101, 99, 100], [150, 151, 149, 150], 0.03, change=0.5)
    assert apart.outcome == "regression"
    noisy = judge_steps(steps, dict(enumerate([70.0, 130] * 4)), 0.03, change=0.0)
    assert noisy.outcome == "inconclusive"


def test_a_step_is_judged_by_where_it_lies_among_the_others():
    others = [100, 101, 99, 104]
    lengths = (150, 100, 90, 103.9)
    outcomes = [judge_step(others, length, 0.02).outcome for length in lengths]
    assert outcomes == ["regression", "neutral", "improvement", "neutral"]
    assert judge_step([100], 200, 0.02).outcome == "inconclusive"


def test_a_change_that_the_cost_of_recording_may_have_made_is_no_verdict():
    faster = Judgement("improvement", (-0.4, -0.2), ("told",))
    asked = {"gate": 0.03, "is_estimated": True}
    assert judge_cost(faster, None, known=0.0, **asked) == faster
    assert judge_cost(faster, (-0.5, -0.1), known=0.0, **asked) == faster
    for changes in [(-0.5, -0.02), (-0.5, 0.3), (0.1, 0.3)]:
        within = judge_cost(faster, changes, known=-0.01, **asked)
        assert within.outcome == "inconclusive"
        assert "--step-time" in within.reasons[0]
    # Recording does not make GPU work longer.
    by_gpu = judge_cost(faster, (-0.5, 0.3), known=-0.2, **asked)
    assert (by_gpu.outcome, by_gpu.reasons[1]) == ("improvement", "told")
    against = judge_cost(faster, (-0.5, 0.3), known=0.2, **asked)
    assert against.outcome == "inconclusive"
    # Where steps were timed, more of their times would not help.
    timed = judge_cost(faster, (-0.5, 0.3), known=0.0, **(asked | {"is_estimated": False}))
    assert timed.outcome == "inconclusive"
    assert "--step-time" not in timed.reasons[0]
