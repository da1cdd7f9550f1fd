"""Whether a change matters, by its interval and the gate."""

from __future__ import annotations

import numpy as np
import pytest

from longpole.diffs.judgement import (
    Intervals,
    is_beyond_noise,
    judge,
    judge_step,
    moderated_t,
    too_few,
)
from longpole.diffs.runs import joint_lengths
from longpole.diffs.samples import Sampling, sampling_of


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


def judged(*interval, gate=0.03, at_any_cost=None, as_estimated=None, spread=0.0):
    found = Intervals(interval, at_any_cost or interval, as_estimated or interval, spread)
    return judge(found, gate, n_each=(1, 1), are_runs=False)


def test_the_whole_interval_is_held_against_the_gate_and_the_spread():
    outcomes = [judged(*it).outcome for it in [(-0.02, 0.03), (0.04, 0.3), (-0.3, -0.04)]]
    assert outcomes == ["neutral", "regression", "improvement"]
    for interval in [(0.02, 0.5), (-0.5, -0.02), (-0.5, 0.5), (-0.031, 0.0)]:
        assert judged(*interval).outcome == "inconclusive"
    assert judged(0.04, 0.3, spread=0.05).open_by == "spread"
    assert judged(0.06, 0.3, spread=0.05).outcome == "regression"


def test_an_open_verdict_says_what_leaves_it_open():
    certain, open_ = (0.1, 0.2), (0.0, 0.2)
    assert judged(*open_, as_estimated=certain).open_by == "cost"
    assert "--step-time" in judged(*open_, as_estimated=certain).reasons[0]
    assert judged(*open_, as_estimated=certain, at_any_cost=certain).open_by == "machine"
    assert judged(*open_).open_by == "noise"
    assert judged(0.02, 0.2).open_by == "gate"
    assert judged(*certain).open_by is None


def test_every_nth_step_that_differs_on_both_sides_alike_is_no_noise():
    base = {step: 100.0 + 50 * (step % 2) + step / 10 for step in range(8)}
    new = {step: 1.1 * length for step, length in base.items()}
    assert sampling_of(base, new).limits(base, new) == pytest.approx((0.1, 0.1))
    assert Sampling().limits({1: 1.0}, {1: 2.0}) is None
    few = too_few((1, 1), are_runs=False)
    assert (few.outcome, few.open_by) == ("inconclusive", "noise")


@pytest.mark.parametrize("cycle", [2, 3, 4])
def test_steps_that_come_in_cycles_are_compared_by_cycle(cycle):
    n_held = 0
    for seed in range(40):
        dice = np.random.default_rng(seed)
        base = dict(enumerate(100 + dice.standard_normal(4 * cycle + 1)))
        new = {it: 100 + dice.standard_normal() + 30 * (it % cycle == 0) for it in base}
        sampling = sampling_of(base, new)
        assert sampling.cycle == cycle
        low, high = sampling.limits(base, new)
        assert high - low < 0.06
        n_held += low <= 0.3 / cycle <= high
    assert n_held >= 0.9 * 40


@pytest.mark.parametrize("seed", range(20))
def test_steps_that_only_vary_are_each_a_sample(seed):
    dice = np.random.default_rng(seed)
    base, new = (dict(enumerate(100 + dice.standard_normal(12))) for _ in range(2))
    assert sampling_of(base, new).cycle == 1


def test_ranks_that_are_late_by_turns_make_no_step_longer():
    turns = [{1: 10.0, 2: 14.0, 3: 10.0}, {1: 14.0, 2: 10.0, 3: 14.0}, {1: 12.0, 2: 12.0, 3: 12.0}]
    assert sum(joint_lengths(turns).values()) == pytest.approx(38.0)
    assert joint_lengths([{1: 10.0, 2: 10.0}, {1: 30.0, 2: 30.0}]) == {1: 30.0, 2: 30.0}


def test_a_step_is_judged_by_where_it_lies_among_the_others():
    others = [100, 101, 99, 104]
    lengths = (150, 100, 90, 103.9)
    outcomes = [judge_step(others, length, 0.02).outcome for length in lengths]
    assert outcomes == ["regression", "neutral", "improvement", "neutral"]
    assert judge_step([100], 200, 0.02).outcome == "inconclusive"
