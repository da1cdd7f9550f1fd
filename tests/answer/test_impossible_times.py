"""No verdict rests on GPU activities whose recorded times cannot be right."""

from __future__ import annotations

from pathlib import Path

import pytest

import longpole
from longpole.testing import TraceBuilder

CASES = Path(__file__).parents[3] / "shared" / "data" / "cases" / "public"


def steps(**changed):
    """Build six steps of 10 ms whose kernel of 3 ms starts with its launch, except one given."""
    builder = TraceBuilder()
    for number in range(6):
        begin = 100 + 10_000 * number
        builder.step(number, (begin, begin + 9_940))
        builder.operator("aten::mm", (begin + 100, begin + 5_000))
        work = (begin + 4_920, begin + 7_920)
        if number == changed.get("step"):
            work = tuple(begin + at for at in changed["work"])
        builder.launch("gemm", call=(begin + 4_900, begin + 4_910), work=work)
    return builder


def codes(trace):
    return {finding.code: finding for finding in longpole.check(trace)}


def test_a_kernel_long_before_its_launch_is_no_matter_of_clocks(said):
    found = codes(steps(step=3, work=(500, 3_500)).read())
    assert found["long_before_launch"].count == 1
    said.within(found["long_before_launch"].sentence)
    assert "work_before_its_call" not in found


def test_a_clock_that_is_off_moves_all_kernels():
    builder = TraceBuilder()
    for number in range(6):
        begin = 10_000 * number + 100
        builder.launch("gemm", call=(begin + 4_900, begin + 4_910), work=(begin, begin + 100))
    found = codes(builder.read())
    assert found["work_before_its_call"].count == 6
    assert "long_before_launch" not in found


@pytest.mark.parametrize(
    ("step", "work"),
    [(3, (4_920, 24_900)), (3, (-14_000, -4_000))],
    ids=["longer than its step", "before its launch"],
)
def test_there_is_no_verdict_if_impossible_times_fill_much_of_the_steps(said, step, work):
    verdict = steps(step=step, work=work).read().verdict()
    assert (verdict.status, verdict.cause) == ("inconclusive", "impossible_times")
    said.within(verdict.sentence)
    assert verdict.gains == {}
    assert verdict.remedies == ()


def test_a_small_part_of_impossible_times_leaves_the_verdict():
    assert steps(step=3, work=(4_000, 4_100)).read().verdict().status == "ok"
    assert steps().read().verdict().status == "ok"


def test_one_overlap_is_told_in_the_singular(said, tmp_path, capsys):
    from longpole.cli.program import run

    path = steps(step=3, work=(4_920, 24_900)).write(tmp_path / "trace.json")
    run(["path", str(path)])
    said.within(capsys.readouterr().err)


def test_replays_that_were_recorded_too_late_limit_nothing():
    if not CASES.is_dir():
        pytest.skip("the public cases are not here")
    verdict = longpole.read_trace(CASES / "sglang31545_small.json").verdict()
    assert (verdict.status, verdict.cause) == ("inconclusive", "impossible_times")
