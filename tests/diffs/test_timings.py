"""Recordings that carry steps timed without the profiler are compared by these times."""

from __future__ import annotations

import json
from statistics import median

import pytest

import longpole
from longpole.cli import program
from longpole.diffs.notes import notes_of
from longpole.words.wording import duration
from oracles.simulator import Machine, Run, Scale
from oracles.simulator.losses import PlantedCosts, with_overhead
from oracles.simulator.program import Busy, Launch, Program, Stream, Work, annotation, operator

_NAMES = ("mul", "add", "sub", "div", "exp", "log", "abs", "neg", "sin", "cos")
_TWO_STEPS = 3
"""Recorded steps: the first one does not count."""


def _program(n_operators):
    work = Work("kernel", "elementwise", 1_500)
    body = [
        operator(f"aten::{name}", Busy(9_000), Launch((work,), Stream(0, 7)), Busy(2_000))
        for name in (_NAMES * 10)[:n_operators]
    ]
    steps = [annotation(f"ProfilerStep#{step}", *body, step=step) for step in range(_TWO_STEPS)]
    return Program("host", tuple(steps))


@pytest.fixture
def recorded(tmp_path):
    def recorded(name, n_operators, *factors, by=1.0, seed=5):
        """Write a recording that carries times of steps, as factors of the recorded step."""
        changes = [Scale(kind, ".", by=by) for kind in ("operator", "runtime")] if by != 1 else []
        path = tmp_path / f"{name}.json"
        Run(_program(n_operators), Machine(seed=seed), changes).write(path)
        steps = longpole.read_trace(path).steps
        unit_ns = median(steps["window_end_ns"][1:] - steps["window_start_ns"][1:])
        document = json.loads(path.read_text())
        times = [round(factor * unit_ns) for factor in factors]
        document["longpole"] = {"step_time_ns": {"before": times[:2], "after": times[2:]}}
        path.write_text(json.dumps(document))
        return path

    return recorded


def test_few_recorded_steps_suffice_if_others_were_timed(recorded, capsys, said):
    base = recorded("base", 60, 0.84, 0.85, 0.86, 0.9)
    new = recorded("new", 30, 0.84, 0.85, 0.86, 0.9)
    found = longpole.diff(base, new)
    assert (found.base.n_steps, found.verdict) == (2, "improvement")
    assert found.base.mean_ns == median(found.base.timed_ns)
    assert found.change == found.new.mean_ns / found.base.mean_ns - 1
    assert found.interval[0] < found.change < found.interval[1] < 0
    assert found.base.range_ns == (min(found.base.timed_ns), max(found.base.timed_ns))
    assert "4 timings and 4 timings" in found.sentence
    said.within(found.sentence)  # the median of timings, no mean
    assert program.run(["diff", str(new), str(base), "--gate", "3%"]) == 1
    assert "  Regression: " in capsys.readouterr().out


def test_timings_that_overlap_are_inconclusive(recorded):
    base = recorded("base", 60, 0.80, 0.85, 0.86, 0.95)
    new = recorded("new", 50, 0.80, 0.85, 0.86, 1.10)
    found = longpole.diff(base, new)
    assert found.verdict == "inconclusive"
    assert found.interval[0] < 0 < found.interval[1]


@pytest.mark.parametrize("share", [0.95, 0.7])
def test_timings_that_the_recorded_steps_of_the_same_work_contradict_are_no_verdict(
    share, recorded
):
    times = (0.84, 0.841, 0.842, 0.843)
    base = recorded("base", 60, *times)
    new = recorded("new", 60, *(share * time for time in times), seed=6)
    found = longpole.diff(base, new)
    assert found.verdict == "inconclusive"
    assert found.change == pytest.approx(share - 1, abs=0.01)
    assert found.interval[1] == pytest.approx(found.recorded_change, abs=0.01)


def test_timed_steps_of_a_slower_machine_are_no_regression(recorded):
    base = recorded("base", 60, 0.84, 0.85, 0.86, 0.9)
    new = recorded("new", 60, 0.84, 0.85, 0.86, 0.9, by=1.6)
    found = longpole.diff(base, new)
    assert found.change > 0.3
    assert found.machine.ratio == pytest.approx(1.6, rel=0.05)
    assert found.verdict == "inconclusive"


def test_tables_say_which_steps_they_are_about(recorded):
    base = recorded("base", 60, 0.84, 0.85, 0.86, 0.9)
    new = recorded("new", 30, 0.3, 0.31, 0.32, 0.33)
    same = recorded("same", 60, 0.99, 1.0, 1.0, 1.01)
    told = "The tables of work are about the recorded steps"
    assert told in str(longpole.diff(base, new).blocks()[-1])
    assert told not in str(longpole.diff(same, same).blocks()[-1])


def test_given_times_and_recorded_steps_come_before_timings(recorded):
    base = recorded("base", 60, 0.84, 0.85, 0.86, 0.9)
    given_ns = longpole.read_trace(base).recording_cost()["step_ns"]
    for options in ({"as_recorded": True}, {"step_times_ns": (given_ns, given_ns)}):
        found = longpole.diff(base, base, **options)
        assert found.base.timed_ns == ()


def test_given_times_are_the_lengths_that_are_compared(tmp_path, capsys):
    paths, given_ns = [tmp_path / "base.json", tmp_path / "new.json"], []
    for path, n_operators in zip(paths, (60, 50), strict=True):
        costs = PlantedCosts(operator=3_000, call=3_900, annotation=6_000)
        Run(with_overhead(_program(n_operators), costs), Machine(seed=5)).write(path)
        given_ns.append(round(0.8 * longpole.read_trace(path).verdict().window.length_ns))
    found = longpole.diff(*paths, step_times_ns=tuple(given_ns))
    assert (found.base.mean_ns, found.new.mean_ns) == pytest.approx(given_ns, rel=1e-5)
    assert found.change == pytest.approx(given_ns[1] / given_ns[0] - 1, rel=1e-4)
    lengths = " to ".join(duration(time_ns) for time_ns in given_ns)
    assert f": the step goes from {lengths}" in found.sentence
    given = [f"--step-time={time_ns}ns" for time_ns in given_ns]
    program.run(["diff", *map(str, paths), *given])
    assert f": the step goes from {lengths}" in capsys.readouterr().out
    assert program.run(["diff", *map(str, paths), given[0]]) == 2
    assert "give --step-time twice" in capsys.readouterr().err


def test_the_cost_of_recording_makes_no_operator_of_equal_recordings_slower(tmp_path):
    path = tmp_path / "trace.json"
    costs = PlantedCosts(operator=3_000, call=3_900, annotation=6_000)
    Run(with_overhead(_program(60), costs), Machine(seed=5)).write(path)
    length_ns = longpole.read_trace(path).verdict().window.length_ns
    step_times_ns = (round(0.7 * length_ns), round(0.95 * length_ns))
    found = longpole.diff(path, path, step_times_ns=step_times_ns)
    operators = [it for it in found.changes if it.kind == "operator"]
    assert found.change > 0.3
    assert all(it.new_ns == pytest.approx(it.base_ns) for it in operators)
    told = "Of operators that both sides call equally often"
    assert any(note.startswith(told) for note in notes_of(found, operators, is_brief=False))
    as_recorded = longpole.diff(path, path, as_recorded=True)
    notes = notes_of(as_recorded, operators, is_brief=False)
    assert not any(note.startswith(told) for note in notes)
