"""Programs recorded on a GPU, slow and mended, with the gain that was measured."""

from __future__ import annotations

import pytest

from oracles.gpu_truth import GPU, MENDING, rows

pytestmark = pytest.mark.skipif(not GPU.exists(), reason="the recorded programs are not here")

# Programs that kernels limit: the profiler adds next to nothing to their steps.
KERNELS = ["attention", "kernels", "transposes"]

_TOLERANCE = 0.03


@pytest.mark.parametrize("name", sorted(MENDING))
def test_the_cause_is_named_in_the_first_two_lines(name: str):
    [row] = rows([name])
    named = [remedy.remedy for remedy in row["before"].remedies if remedy.named][:2]
    assert {*named} & {*MENDING[name]}, named
    assert row["still_named"] == []


@pytest.mark.parametrize("name", KERNELS)
def test_the_interval_of_a_change_of_kernels_holds_the_measured_gain(name: str):
    [row] = rows([name])
    found = row["before"].remedies[0]
    assert found.remedy in MENDING[name]
    measured = row["measured"][0]
    assert found.gain_low - _TOLERANCE <= measured <= found.gain_high + _TOLERANCE, found
    assert found.gain_high - found.gain_low < 0.15
