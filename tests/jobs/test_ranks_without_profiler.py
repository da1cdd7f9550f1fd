"""The steps of several ranks without the profiler, by the time of a step that is given."""

from __future__ import annotations

import json

import pytest

from longpole import ranks, read_traces
from longpole.cli import program
from oracles.simulator.ranks import write_ranks
from oracles.simulator.ranks_programs import random_ranks


@pytest.fixture
def folder(tmp_path):
    """Write the ranks of a data-parallel program."""
    run = random_ranks(5, pattern="data", n_stragglers=0)
    write_ranks(run.job, run.job.times_ns(), run.clocks, tmp_path)
    return tmp_path


@pytest.fixture
def step_ns(folder):
    """Return a step time that is a little less than every rank has recorded."""
    traces = read_traces(str(folder))
    verdicts = [traces.trace(rank).verdict() for rank in traces.rank_numbers]
    return round(0.99 * min(verdict.window.length_ns for verdict in verdicts))


def test_the_steps_of_each_rank_are_told_as_recorded_and_without_the_profiler(folder, step_ns):
    traces = read_traces(str(folder))
    found = ranks(traces, step_time_ns=step_ns).steps_without_profiler
    assert [row["rank"] for row in found] == list(traces.rank_numbers)
    assert all(row["recorded_step_ns"] > step_ns for row in found)
    fitting = [row for row in found if row["reason"] is None]
    assert fitting
    assert all(row["step_ns"] == pytest.approx(step_ns, rel=0.006) for row in fitting)
    assert all("the step takes" in row["reason"] for row in found if row not in fitting)
    assert ranks(traces).steps_without_profiler == ()


def test_the_command_takes_the_time_of_a_step(folder, step_ns, capsys):
    given = ["--step-time", f"{step_ns}ns"]
    assert program.run(["ranks", str(folder), *given]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert " without the profiler, as given (" in text
    assert " recorded). Waits, gains and the path are as recorded." in text
    program.run(["ranks", str(folder), *given, "--json"])
    rows = json.loads(capsys.readouterr().out)["data"]["steps_without_profiler"]
    assert any(row["step_ns"] == pytest.approx(step_ns, rel=0.006) for row in rows)


def test_a_time_that_does_not_fit_names_the_ranks(folder, capsys):
    assert program.run(["ranks", str(folder), "--step-time", "100s"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Without the profiler, the step of ranks 0-7 is unknown: the given step" in text
    assert "step time of 100 s is not used" in text
