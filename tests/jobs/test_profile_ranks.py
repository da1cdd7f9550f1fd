"""Ranks of Ascend and MindSpore profiles: which folders hold them, and what they say together."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from ray_stand_ins import PicklingRay

import longpole
from ascend_profiles import late_peer
from longpole.cli import program
from longpole.errors import RanksError, TraceError
from mindspore_files import cpu_profile, given

if TYPE_CHECKING:
    from pathlib import Path


def ascend_ranks(folder: Path) -> Path:
    """Write two ranks of a group of six, of which rank 5 of the group is late."""
    for rank in (0, 1):
        output = folder / f"rank{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        late_peer().write(output / "trace_view.json")
    return folder


def test_ranks_of_mindspore_are_files_of_one_folder(tmp_path: Path) -> None:
    for rank in (3, 11):
        cpu_profile(tmp_path / "profiler", rank)
    (tmp_path / "profiler" / "profiler_info_3.json").write_text("{}")
    found = longpole.read_traces(tmp_path)
    assert found.rank_numbers == (3, 11)
    assert found.ranks["steps"].to_list() == [3, 3]
    assert found.findings == () or {it.kind for it in found.findings} == {"unconnected clocks"}
    assert found.trace(11).rank == 11


def test_a_folder_of_several_mindspore_ranks_is_no_single_trace(tmp_path: Path) -> None:
    for rank in (0, 1):
        cpu_profile(tmp_path, rank)
    with pytest.raises(TraceError, match="a directory with 2 timelines") as raised:
        longpole.read_trace(tmp_path)
    assert "longpole ranks" in (raised.value.hint or "")
    trace = longpole.read_trace(tmp_path / "cpu_op_execute_timestamp_1.txt")
    assert (trace.rank, trace.steps.height) == (1, 3)


def test_ranks_without_collectives_are_listed_and_not_joined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], said: Any
) -> None:
    for rank in (0, 1):
        cpu_profile(tmp_path, rank)
    program.run(["ranks", str(tmp_path)])
    output = capsys.readouterr().out
    said.within(output)
    assert "longpole diff" in output
    assert "Path of the run" not in output


def test_timelines_that_mindspore_drew_are_read_where_the_text_is_missing(tmp_path: Path) -> None:
    event = '[{"ph": "X", "name": "Add", "pid": 2, "tid": 1, "ts": 1, "dur": 2}]'
    for rank in (0, 1):
        (tmp_path / f"ascend_timeline_display_{rank}.json").write_text(event)
    (tmp_path / "pipeline_profiling_0.json").write_text("{}")
    assert longpole.read_traces(tmp_path).rank_numbers == (0, 1)


def test_waiting_for_an_absent_rank_is_what_the_tasks_say(tmp_path: Path) -> None:
    found = longpole.read_traces(ascend_ranks(tmp_path))
    [call] = found.calls.iter_rows(named=True)
    # Of 120-920 us, 150-900 is a wait for rank 5 with nothing moving; 20 us each move data.
    assert (call["last"], call["awaited"], call["cause"]) == (None, 5, "late arrival")
    assert found.members["wait_ns"].to_list() == [770_000, 770_000]
    assert found.members["transfer_ns"].to_list() == [30_000, 30_000]
    assert found.members["awaited_ns"].to_list() == [770_000, 770_000]
    assert found.tells_waits


def test_the_answer_names_the_rank_that_is_to_be_added(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], said: Any
) -> None:
    assert program.run(["ranks", str(ascend_ranks(tmp_path))]) == 0
    output = " ".join(capsys.readouterr().out.split())
    # The verdict comes before what it rests on.
    assert output.index("waiting, longest for rank 5") < output.index(", matched by")
    said.within(output)
    said.within(output)


def test_waits_are_the_same_whoever_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", PicklingRay())
    folder = ascend_ranks(tmp_path)
    one = longpole.read_traces(folder, engine="threads")
    other = longpole.read_traces(folder, engine="ray", workers=1)
    assert one.members.equals(other.members)


def test_real_ranks_wait_for_the_one_that_their_tasks_name() -> None:
    found = longpole.read_traces(given("ascend_level1_text"))
    assert found.rank_numbers == (0, 1)
    assert found.calls["awaited"].to_list()[::3] == [5, 5]
    waited = found.members.group_by("rank").agg(ns=found.members["wait_ns"].sum())
    assert waited.height == 2
    of_rank = [found.trace(rank).collective_waits["waiting_ns"].sum() for rank in (0, 1)]
    totals = found.members.group_by("rank", maintain_order=True).sum().sort("rank")
    assert totals["wait_ns"].to_list() == of_rank


def test_a_folder_with_nothing_names_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(RanksError, match=f"{tmp_path}: no trace .* MindSpore profiles"):
        longpole.read_traces([tmp_path])


def test_one_clock_agrees_with_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], said: Any
) -> None:
    cpu_profile(tmp_path, 0)
    assert program.run(["ranks", str(tmp_path)]) == 4
    printed = capsys.readouterr().out
    said.within(printed)
    assert "Clocks" not in printed
    both = ascend_ranks(tmp_path / "ascend")
    assert program.run(["ranks", str(both)]) == 0
    assert "Clocks" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["ranks"], ["path"], ["diff", "."]])
def test_a_profile_without_a_timeline_is_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str], said: Any
) -> None:
    (tmp_path / "minddata_pipeline_summary_0.json").write_text("{}")
    (tmp_path / "pipeline_profiling_0.json").write_text("{}")
    [name, *rest] = command
    assert program.run([name, str(tmp_path), *(str(tmp_path) for _ in rest)]) == 3
    printed = capsys.readouterr().err
    assert printed.count(str(tmp_path)) == 1
    said.within(printed)
    said.within(printed)
