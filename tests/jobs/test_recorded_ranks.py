"""Two ranks of NCCL, as they were recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from longpole import read_trace, read_traces
from longpole.cli import program
from longpole.tables.check import check

RECORDINGS = Path(__file__).parents[1] / "recordings"


@pytest.fixture(params=["late_rank", "communication_overlap"])
def ranks(request):
    paths = [RECORDINGS / f"{request.param}.rank{number}.json.gz" for number in (0, 1)]
    return request.param, read_traces(paths)


def test_all_calls_are_matched(ranks):
    name, traces = ranks
    n_calls = {"late_rank": 4, "communication_overlap": 16}[name]
    assert traces.calls.height == n_calls
    assert "unmatched call" not in [finding.kind for finding in traces.findings]


def test_the_rank_that_works_on_the_host_makes_the_other_wait():
    paths = [RECORDINGS / f"late_rank.rank{number}.json.gz" for number in (0, 1)]
    assert read_traces(paths).calls["last"].to_list() == [1, 1, 1, 1]


def test_of_two_ranks_the_other_is_the_measure_and_a_step_is_no_function(capsys):
    paths = [str(RECORDINGS / f"late_rank.rank{number}.json.gz") for number in (0, 1)]
    host, kernels = read_traces(paths).late_ranks()
    assert (host.rank, host.cause, host.name) == (1, "host time outside operators", None)
    assert (host.compared_with, kernels.cause) == ("rank 0", "more work")
    assert program.run(["ranks", *paths]) == 0
    said = capsys.readouterr().out
    assert "median" not in said.partition("Clocks")[0]
    assert "ProfilerStep" not in said
    assert "record Python stacks" in " ".join(said.split())
    assert f"1  longpole path {paths[1]} --step 2" in said  # the step of the longest wait


def test_where_no_rank_is_late_neither_of_two_is(capsys):
    paths = [str(RECORDINGS / f"communication_overlap.rank{number}.json.gz") for number in (0, 1)]
    for step, has_late_calls in ((2, True), (3, False)):
        program.run(["ranks", *paths, "--step", str(step)])
        said = capsys.readouterr().out
        assert "Neither rank makes the other wait" in said
        assert (f"longpole path {paths[0]} --step {step}" in said) == has_late_calls


def test_the_bare_summary_of_ranks_ends_with_the_answer_about_all(capsys):
    paths = [str(RECORDINGS / f"late_rank.rank{number}.json.gz") for number in (0, 1)]
    assert program.run(paths) == 0
    told = " ".join(capsys.readouterr().out.partition("together")[2].split())
    assert told.startswith("Rank 1 (device 0, NVIDIA H100 80GB HBM3) makes rank 0 wait (host time")
    assert told.endswith(f"More: `longpole ranks {' '.join(paths)}`.")
    assert program.run([*paths, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_the_bare_summary_of_two_other_traces_says_how_to_compare_them(capsys):
    paths = [str(RECORDINGS / f"masks.{side}.json.gz") for side in ("before", "after")]
    assert program.run(paths) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.endswith(f"To compare the two: `longpole diff {' '.join(paths)}`.")


def test_a_rank_whose_file_breaks_off_is_compared_with_no_other(tmp_path, capsys, said):
    for number in (0, 1):
        content = (RECORDINGS / f"late_rank.rank{number}.json.gz").read_bytes()
        part = content[: len(content) * 3 // 5] if number else content
        tmp_path.joinpath(f"rank{number}.json.gz").write_bytes(part)
    assert program.run(["ranks", str(tmp_path)]) == 4
    printed = " ".join(capsys.readouterr().out.split())
    said.within(printed)
    assert "Rank 1 makes" not in printed
    assert f"{tmp_path}/rank1.json.gz: The trace is damaged (" in printed
    traces = read_traces(tmp_path)
    assert (traces.damaged_ranks, traces.late_ranks()) == ((1,), ())
    assert "damaged trace" in [finding.kind for finding in traces.findings]


def test_of_a_step_only_the_path_is_shown(capsys, said):
    paths = [str(RECORDINGS / f"late_rank.rank{number}.json.gz") for number in (0, 1)]
    assert program.run(["ranks", *paths, "--step", "3"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    said.within(first)


def test_a_file_of_several_ranks_says_so():
    found = check(read_trace(RECORDINGS / "late_rank.rank1.json.gz"))
    assert [it.sentence for it in found if it.code == "one_of_ranks"] == ["the file is rank 1 of 2"]
    alone = check(read_trace(RECORDINGS / "decode.before.json.gz"))
    assert "one_of_ranks" not in [it.code for it in alone]
