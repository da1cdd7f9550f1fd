"""Causes that a comparison names: what hidden work, other ranks and other options do not show."""

from __future__ import annotations

import pytest

import longpole
from longpole.testing import TraceBuilder
from real_traces import SHARED

CASES = SHARED / "cases"
PROGRAMS = SHARED / "gpu" / "programs"
needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason="the cases of ../shared are not here")


def _steps(work_us, host_us):
    """Return steps that wait for a kernel, and then work on the host."""
    builder, begin = TraceBuilder(), 0
    for step in range(8):
        end = begin + work_us + host_us + 20
        builder.step(step, (begin, end))
        builder.launch("gemm", call=(begin, begin + 10), work=(begin + 12, begin + 12 + work_us))
        builder.call("cudaDeviceSynchronize", (begin + 11, begin + 14 + work_us))
        begin = end
    return builder.read()


def test_a_gain_and_a_loss_that_meet_are_both_named():
    found = longpole.diff(_steps(440, 50), _steps(220, 270))
    assert found.verdict == "neutral"
    assert "220 µs shorter; and host time outside operators" in found.sentence
    assert "216 µs longer" in found.sentence


def _two_ranks(late_us):
    """Return two ranks; the first works on the host before a collective that both wait in."""
    sides = []
    for number, own_us in enumerate((100 + late_us, 100)):
        builder = TraceBuilder().header(distributedInfo={"rank": number, "world_size": 2})
        period = 400 + late_us
        for step in range(6):
            begin = period * step
            builder.step(step, (begin, begin + period - 5))
            builder.python("dataloader.py(5): __next__", (begin, begin + own_us - 10))
            call = (begin + own_us, begin + own_us + 5)
            work = (begin + own_us + 6, begin + late_us + 300)
            builder.launch("ncclDevKernel_AllReduce_Sum_f32", call=call, work=work)
            builder.call("cudaDeviceSynchronize", (call[1] + 1, work[1] + 3))
        sides.append(builder.read())
    return sides


def test_the_rank_that_the_others_wait_for_is_described():
    found = longpole.diff(_two_ranks(0), _two_ranks(900))
    assert (found.verdict, found.new.rank) == ("regression", 0)
    assert "data loading: " in found.sentence
    assert "AllReduce" not in found.sentence
    back = longpole.diff(_two_ranks(900), _two_ranks(0))
    waits = {"communication_overlap", "stream_waits", "late_rank"}
    assert not waits & {row.remedy for row in back.predictions}


@needs_cases
@pytest.mark.parametrize("case", ["no_shapes", "stacks_new"])
def test_other_options_of_the_recording_are_no_remedy_and_no_cause(case):
    sides = [CASES / "diff" / case / f"{side}.json.gz" for side in ("base", "new")]
    for pair in (sides, sides[::-1]):
        found = longpole.diff(*pair)
        assert found.verdict in {"neutral", "inconclusive"}
        assert found.predictions == ()
        assert "What changed most" not in found.sentence


@needs_cases
@pytest.mark.parametrize("case", ["gap_hidden", "gap_hidden_by_communication", "kernels_slower"])
def test_hidden_work_has_no_effect(case):
    sides = [CASES / "diff" / case / f"{side}.json.gz" for side in ("base", "new")]
    for pair in (sides, sides[::-1]):
        found = longpole.diff(*pair)
        least_ns = 0.05 * found.base.recorded_mean_ns
        assert all(abs(it.effect_ns or 0.0) <= least_ns for it in found.changes)


@needs_cases
def test_a_remedy_and_its_reverse_are_one_program():
    sides = [PROGRAMS / f"attention.{side}.json.gz" for side in ("before", "after")]
    applied, undone = longpole.diff(*sides), longpole.diff(*sides[::-1])
    assert (applied.verdict, undone.verdict) == ("improvement", "regression")
    assert undone.undone == ("fused_attention",)
    assert "the new side lacks what fused_attention gave the base" in undone.sentence


@needs_cases
def test_equal_kernels_are_one_program_when_the_host_runs_ahead():
    sides = [CASES / "answers" / name / "x_kernel_trace.csv" for name in ("sync_each", "sync_once")]
    for pair in (sides, sides[::-1]):
        assert longpole.diff(*pair).is_one_program
