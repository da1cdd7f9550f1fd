"""Programs recorded on a GPU, slow and mended, with the gain that was measured."""

from __future__ import annotations

from functools import cache

import pytest

from longpole import Trace, read_trace
from oracles.gpu_truth import GPU, MENDING, rows

pytestmark = pytest.mark.skipif(not GPU.exists(), reason="the recorded programs are not here")

# Their operators are also slower than in the mended program, which no change of the graph says.
TOO_LOW = ["hostwork"]

_TOLERANCE = 0.03


@cache
def _unprofiled(name: str) -> Trace:
    """Return the slow program as it would run without the profiler."""
    return read_trace(GPU / "programs" / f"{name}.before.json.gz").without_profiler()


@pytest.mark.parametrize("name", sorted(MENDING))
def test_the_cause_is_named_in_the_first_two_lines(name: str):
    [row] = rows([name])
    named = [remedy.remedy for remedy in row["before"].remedies if remedy.named][:2]
    assert {*named} & {*MENDING[name]}, named
    assert row["still_named"] == []


@pytest.mark.parametrize("name", sorted({*MENDING} - {*TOO_LOW}))
def test_the_interval_without_the_profiler_holds_the_measured_gain(name: str):
    found = next(
        remedy for remedy in _unprofiled(name).verdict().remedies if remedy.remedy in MENDING[name]
    )
    [row] = rows([name])
    measured = row["measured"][0]
    assert found.gain.low - _TOLERANCE <= measured <= found.gain.high + _TOLERANCE, found
    assert found.gain.high - found.gain.low <= 0.2


def test_an_estimated_cost_of_recording_bounds_the_gain():
    trace = read_trace(GPU / "programs" / "optimizer.before.json.gz")
    estimated = trace.without_profiler().verdict().remedies[0]
    assert (estimated.gain.low_by, estimated.gain.high_by) == ("recording_cost", "recording_cost")
    given = trace.without_profiler(step_time_ns=78_000_000).verdict().remedies[0]
    assert (given.gain.low_by, given.gain.high_by) == ("recording_cost", "recording_cost")
    # With a known step, less of the cost is in doubt.
    assert given.gain.high - given.gain.low < estimated.gain.high - estimated.gain.low


def test_intervals_are_narrow_and_most_hold_the_measured_median():
    """A third lies within 3 points of an interval, as the programs ran at other speeds."""
    inside, widths = [], []
    for name in MENDING:
        gain = next(
            it for it in _unprofiled(name).verdict().remedies if it.remedy in MENDING[name]
        ).gain
        [row] = rows([name])
        inside += [name] if gain.low <= row["measured"][0] <= gain.high else []
        widths.append(gain.high - gain.low)
    assert len(inside) >= 7, inside
    assert sorted(widths)[len(widths) // 2] <= 0.12


def test_a_wide_range_says_what_is_certain_and_what_narrows_it():
    trace = read_trace(GPU / "programs" / "optimizer.before.json.gz")
    line = trace.answer().verdict.plan.lines[0]
    assert line.then.high - line.then.low > 0.4
    assert f"saves at least {round(100 * line.then.low)} % (" in line.told
    assert line.told.endswith("Give the time of a step without the profiler (--step-time).")
