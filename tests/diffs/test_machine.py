"""A machine that was slower or busier in one recording is not taken for a change of the program."""

from __future__ import annotations

from pathlib import Path

import pytest

import longpole
from longpole.cli import program
from longpole.testing import TraceBuilder
from oracles.simulator import Machine, Run, Scale
from oracles.simulator.program import Busy, Launch, Program, Stream, Work, annotation, operator
from real_traces import SHARED

_STREAM = Stream(0, 7)
_NAMES = ("mul", "add", "sub", "div", "exp", "log", "abs", "neg", "sin", "cos")
PROGRAMS = SHARED / "gpu" / "programs"
RECORDINGS = Path(__file__).parents[1] / "recordings"
PAIRS = ["attention", "launches", "transposes", "loader", "decode", "hostwork"]


def _host_limited(n_operators):
    """Return steps of 40 small kernels, and of more with another name, that the host limits."""
    work = Work("kernel", "elementwise", 1_500)
    names = [_NAMES[place % 10] for place in range(40)] + ["clone"] * (n_operators - 40)
    body = [
        operator(f"aten::{name}", Busy(9_000), Launch((work,), _STREAM), Busy(2_000))
        for name in names
    ]
    steps = [annotation(f"ProfilerStep#{step}", *body, step=step) for step in range(8)]
    return Program("host", tuple(steps))


@pytest.fixture
def recorded(tmp_path):
    def recorded(name, n_operators, by=1.0):
        changes = [Scale(kind, ".", by=by) for kind in ("operator", "runtime")] if by != 1 else []
        path = tmp_path / f"{name}.json"
        Run(_host_limited(n_operators), Machine(seed=5), changes).write(path)
        return path

    return recorded


def test_a_slower_machine_is_named_with_its_factor_and_part_of_the_interval(recorded):
    base, new = recorded("base", 60), recorded("new", 40, by=1.9)
    found = longpole.diff(longpole.read_trace(base), longpole.read_trace(new))
    assert found.change > 0.1
    assert found.machine.ratio == pytest.approx(1.9, rel=0.05)
    assert (found.verdict, found.open_by) == ("inconclusive", "machine")
    assert found.interval[0] == pytest.approx(-1 / 3, abs=0.08)
    assert found.interval[1] >= found.change
    assert f"{found.machine.ratio:.2f} times slower" in found.sentence
    assert found.sentence.startswith("Inconclusive (the machine may have made the change): ")


def test_several_runs_on_a_slower_machine_are_no_regression_either(recorded):
    sides = [
        [longpole.read_trace(recorded(f"{by}{run}", 60, by=by + run / 100)) for run in range(4)]
        for by in (1.0, 1.9)
    ]
    for pair in (sides, sides[::-1]):
        found = longpole.diff(*pair)
        assert found.base.n_runs == 4
        assert (found.verdict, found.open_by) == ("inconclusive", "machine")
        assert found.interval[0] <= 0.02
        assert found.interval[1] >= -0.02


def test_the_same_program_on_a_busier_machine_fails_no_gate(recorded, capsys, said):
    base, new = recorded("base", 60), recorded("new", 60, by=1.9)
    assert program.run(["diff", str(base), str(new), "--gate", "3%"]) == 4
    out = capsys.readouterr().out
    said.within(out)
    said.within(" ".join(out.split()))


def _two_threads(main_us, other_us):
    """Return a run whose thread of the steps and whose other thread call ten operators each."""
    builder = TraceBuilder()
    for step in range(6):
        begin = 10_000 * step
        builder.step(step, (begin, begin + 9_000))
        for place, name in enumerate(_NAMES):
            start = begin + 100 + 400 * place
            builder.operator(f"aten::{name}", (start, start + main_us))
            at = start + 4_100
            builder.operator(f"aten::{name}_backward", (at, at + other_us), thread=2)
        builder.launch(
            "gemm", call=(begin + 8_500, begin + 8_510), work=(begin + 8_520, begin + 8_900)
        )
    return builder.read()


def test_threads_that_changed_in_opposite_ways_are_no_other_machine():
    base = _two_threads(100, 100)
    opposite = longpole.diff(base, _two_threads(85, 170))
    assert opposite.machine is None
    told = "took 0.85 times as long on the thread of the steps and 1.70 times as long on other "
    assert [told in reason for reason in opposite.reasons].count(True) == 1
    both_slower = longpole.diff(base, _two_threads(150, 170))
    assert not any("of the steps and" in reason for reason in both_slower.reasons)
    slower = both_slower.machine
    assert slower.differs
    assert slower.ratio == pytest.approx(1.6, abs=0.11)


def test_one_recording_of_each_side_has_no_confidence(recorded, capsys, said):
    base, new = recorded("base", 60), recorded("new", 40)
    program.run(["diff", str(base), str(new)])
    out = " ".join(capsys.readouterr().out.split())
    assert "confidence" not in out
    said.within(out)


@pytest.mark.skipif(not PROGRAMS.is_dir(), reason="the recordings of ../shared are not here")
@pytest.mark.parametrize("name", PAIRS)
def test_recorded_pairs_of_which_the_truth_is_known_improve(name):
    sides = [
        longpole.read_trace(PROGRAMS / f"{name}.{side}.json.gz") for side in ("before", "after")
    ]
    found = longpole.diff(*sides)
    assert found.verdict == "improvement"
    alone = [row for row in found.predictions if row.is_alone]
    assert not any(row.measured > row.gain_high + 0.05 for row in alone)


def test_the_interval_contains_the_change_as_recorded_and_at_the_most_likely_cost():
    found = longpole.diff(*(RECORDINGS / f"masks.{side}.json.gz" for side in ("before", "after")))
    for change in (found.change, found.recorded_change):
        assert found.interval[0] <= change <= found.interval[1]
    assert found.verdict == "improvement"


@pytest.mark.skipif(not PROGRAMS.is_dir(), reason="the recordings of ../shared are not here")
@pytest.mark.parametrize("name", ["masks", "download"])
@pytest.mark.parametrize("sides", [("before", "stack"), ("stack", "before")], ids=str)
def test_python_stacks_on_one_side_are_no_change_of_the_program(name, sides):
    found = longpole.diff(*(PROGRAMS / f"{name}.{side}.json.gz" for side in sides))
    assert found.verdict in {"neutral", "inconclusive"}
    assert found.is_one_program
    assert found.interval is None or found.interval[0] <= 0 <= found.interval[1]
