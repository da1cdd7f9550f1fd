"""The steps of several ranks without the profiler, by the time of a step that is given."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from longpole import ranks, read_traces
from longpole.cli import program
from longpole.words.wording import duration
from oracles.simulator.ranks import write_ranks
from oracles.simulator.ranks_programs import random_ranks

RECORDINGS = Path(__file__).parents[1] / "recordings"


@pytest.fixture
def late():
    """Read two recorded ranks, one of which is late."""
    return read_traces([RECORDINGS / f"late_rank.rank{rank}.json.gz" for rank in range(2)])


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


def test_the_command_takes_the_time_of_a_step(folder, step_ns, capsys, said):
    given = ["--step-time", f"{step_ns}ns"]
    assert program.run(["ranks", str(folder), *given]) == 0
    text = " ".join(capsys.readouterr().out.split())
    said.within(text)
    said.within(text)
    program.run(["ranks", str(folder), *given, "--json"])
    rows = json.loads(capsys.readouterr().out)["data"]["steps_without_profiler"]
    assert any(row["step_ns"] == pytest.approx(step_ns, rel=0.006) for row in rows)


def test_a_time_that_does_not_fit_names_the_ranks(folder, capsys, said):
    assert program.run(["ranks", str(folder), "--step-time", "100s"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    said.within(text)
    said.within(text)


def recorded_steps(traces):
    return [traces.trace(rank).recording_cost()["recorded_step_ns"] for rank in traces.rank_numbers]


def test_what_a_fix_saves_is_that_of_the_run_without_the_profiler(late):
    [first, *_] = late.late_ranks()
    assert first.basis == "without_profiler"
    assert first.changed_ns < first.duration_ns < late.duration_ns
    told = "the run without the profiler would take"
    assert told in first.sentence
    least_ns = round(0.95 * min(recorded_steps(late)))
    [shorter, *_] = ranks(late, step_time_ns=least_ns).late_ranks
    assert shorter.duration_ns < first.duration_ns
    assert (shorter.own_ns, shorter.median_ns) == (first.own_ns, first.median_ns)


def test_recording_that_costs_nothing_leaves_every_time_as_recorded(late):
    found = late.late_ranks(max(recorded_steps(late)))
    assert [it.duration_ns for it in found] == [late.duration_ns] * len(found)
    for fix in found:
        assert f"instead of {duration(late.duration_ns)}" in fix.sentence


def test_facts_of_ranks_do_not_depend_on_what_recording_cost(late, capsys):
    sources = [str(RECORDINGS / f"late_rank.rank{rank}.json.gz") for rank in range(2)]

    def told(*words):
        assert program.run(["ranks", *sources, *words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)["data"]

    found = told()
    other = told("--step-time", f"{round(0.95 * min(recorded_steps(late)))}ns")
    facts = ("run_ns", "start_skew_ns", "calls", "clocks", "path", "findings")
    assert {name: found[name] for name in facts} == {name: other[name] for name in facts}
    rows, others = (
        [{**row, "gain_ns": None} for row in answer["ranks"]] for answer in (found, other)
    )
    assert rows == others
    assert found["late_ranks"] != other["late_ranks"]


def test_a_rank_with_an_unknown_cost_leaves_all_as_recorded(tmp_path, said):
    """Else, the rank with a known cost would be faster than the other for that alone."""
    paths = [RECORDINGS / f"late_rank.rank{rank}.json.gz" for rank in range(2)]
    data = json.loads(gzip.decompress(paths[0].read_bytes()))
    data["traceEvents"] = [it for it in data["traceEvents"] if it.get("cat") != "cpu_op"]
    for event in data["traceEvents"]:
        if event.get("ph") == "X":
            event["ts"], event["dur"] = int(event["ts"]), int(event["dur"])
    other = tmp_path / "rank0.json"
    other.write_text(json.dumps(data))
    traces = read_traces([other, paths[1]])
    found = traces.late_ranks()
    assert {it.basis for it in found} == {"recorded"}
    assert found[0].duration_ns == traces.pace_ns
    said.within(found[0].sentence)
