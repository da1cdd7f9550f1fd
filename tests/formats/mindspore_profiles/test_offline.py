"""The analysis of all ranks: what is read, what is written, and what is an error."""

from __future__ import annotations

import json
import os
import stat

import pytest

import longpole
from longpole.formats.mindspore.offline import checked_steps
from longpole.mindspore import ProfileError, RankError, offline_analyse
from mindspore_files import DETAIL, case, copied, cpu_profile, given, host_file, host_line, write


def test_only_the_output_is_written_to_and_its_owner_alone_may_read_it(tmp_path):
    source = copied(given("ms200_cpu_graph"), tmp_path / "given")
    before = {path: path.stat().st_mtime_ns for path in source.rglob("*")}
    found = offline_analyse(source, output=tmp_path / "out")
    assert before == {path: path.stat().st_mtime_ns for path in source.rglob("*")}
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o700
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "out").iterdir()}
    assert modes == {0o600}
    assert sorted(found.ranks[0].written) == sorted((tmp_path / "out").iterdir())
    longpole.summary(longpole.read_trace(tmp_path / "out/timeline_0.json"))
    with pytest.raises(FileExistsError, match="already exists"):
        offline_analyse(source, output=tmp_path / "out")


def test_all_ranks_are_analysed(tmp_path):
    for rank in (0, 1, 11):
        cpu_profile(tmp_path / f"host_{rank}_2026_ascend_ms/FRAMEWORK", rank, steps=rank + 2)
    found = offline_analyse(tmp_path)
    assert [rank.rank for rank in found.ranks] == [0, 1, 11]
    assert [rank.operators[0].n_runs for rank in found.ranks] == [2, 3, 13]
    assert found.output is None


def bad_rank(folder, rank):
    """Write a profile of a rank whose table of operators has too few columns."""
    cpu_profile(folder, rank)
    write(folder / f"cpu_op_detail_info_{rank}.csv", "op_side,op_type")


def test_an_error_names_the_rank_the_file_and_the_line(tmp_path):
    bad_rank(tmp_path, 3)
    with pytest.raises(RankError, match=r"rank 3: .*the header has no column") as caught:
        offline_analyse(tmp_path)
    assert (caught.value.rank, caught.value.code) == (3, "missing_column")
    assert caught.value.path.endswith("cpu_op_detail_info_3.csv")
    handle = offline_analyse(tmp_path, mode="async")
    with pytest.raises(RankError):
        handle.result(60)
    assert handle.done()


def test_a_bad_file_costs_its_rank_and_no_other(tmp_path):
    cpu_profile(tmp_path, 0)
    bad_rank(tmp_path, 3)
    found = offline_analyse(tmp_path, output=tmp_path / "out")
    assert [rank.rank for rank in found.ranks] == [0]
    [failed] = found.failed
    assert (failed.rank, failed.code, failed.line) == (3, "missing_column", 1)
    assert "rank 3: " in failed.message
    assert failed.path.endswith("cpu_op_detail_info_3.csv")
    assert (tmp_path / "out/operators_0.csv").exists()


def test_a_given_profile_with_an_empty_step_trace_is_analysed_without_that_rank():
    found = offline_analyse(case("13_one_bad_rank"))
    assert [rank.rank for rank in found.ranks] == [0, 1]
    assert [(each.rank, each.code) for each in found.failed] == [(3, "empty_file")]


def test_an_analysis_in_the_background_gives_the_same(tmp_path):
    cpu_profile(tmp_path)
    done = offline_analyse(tmp_path, mode="async").result(60)
    assert done.to_dict() == offline_analyse(tmp_path).to_dict()


def test_steps_cut_the_step_trace_and_the_timeline(tmp_path):
    source = given("synthetic", "gpu_async")
    asked = [3, 2]
    found = offline_analyse(source, step_list=asked, output=tmp_path / "out")
    assert asked == [3, 2]
    assert [step.number for step in found.ranks[0].steps] == [2, 3]
    events = json.loads((tmp_path / "out/timeline_0.json").read_text())["traceEvents"]
    marked = [event["name"] for event in events if event.get("cat") == "user_annotation"]
    assert marked == ["ProfilerStep#2", "ProfilerStep#3"]
    assert {event["name"] for event in events if event.get("cat") == "kernel"}
    with pytest.raises(RankError, match="none of the steps 9 to 9 is there"):
        offline_analyse(source, step_list=[9])


def test_steps_that_no_file_marks_are_those_of_the_timeline(tmp_path, said):
    source = cpu_profile(tmp_path / "profile", steps=5)
    offline_analyse(source, step_list=[2, 3], output=tmp_path / "out")
    events = json.loads((tmp_path / "out/timeline_0.json").read_text())["traceEvents"]
    marked = [event["name"] for event in events if event.get("cat") == "user_annotation"]
    assert marked == ["ProfilerStep#2", "ProfilerStep#3"]
    assert sum(event["ph"] == "X" for event in events) == 6
    with pytest.raises(RankError, match="none of the steps 7 to 8 is there"):
        offline_analyse(source, step_list=[7, 8])
    with pytest.raises(RankError) as caught:
        offline_analyse(cpu_profile(tmp_path / "once", steps=1), step_list=[1])
    said(caught.value.hint)


@pytest.mark.parametrize("developer_rows", [True, False])
def test_rows_of_developers_can_be_left_out_of_the_timeline(tmp_path, developer_rows):
    start_us = 1_700_000_000_000_000
    host_file(tmp_path, *(host_line("E", mark, start_us + mark, level=0) for mark in (0, 1)))
    run = f"Default/A-op1;HostCpuOps;{start_us}000,0.1,0 "
    write(tmp_path / "cpu_op_execute_timestamp_0.txt", run)
    offline_analyse(tmp_path, output=tmp_path / "out", developer_rows=developer_rows)
    assert ("E::S" in (tmp_path / "out/timeline_0.json").read_text()) == developer_rows


@pytest.mark.parametrize("steps", ["12", [1.0], [True, 2], [None], {1}])
def test_steps_that_are_no_whole_numbers_are_a_type_error(steps):
    with pytest.raises(TypeError):
        checked_steps(steps)


@pytest.mark.parametrize("steps", [[1, 3], [1, 1], [2, 2, 3]])
def test_steps_that_do_not_follow_one_another_are_an_error(steps):
    with pytest.raises(ValueError, match="must be consecutive"):
        checked_steps(steps)


def test_an_empty_list_of_steps_means_all():
    assert checked_steps([]) == []


def test_a_folder_without_a_profile_is_an_error(tmp_path):
    with pytest.raises(ProfileError) as caught:
        offline_analyse(tmp_path)
    assert caught.value.code == "no_profile"
    with (
        pytest.warns(UserWarning, match="'sync' or 'async', not 'later': 'sync' is used"),
        pytest.raises(ProfileError),
    ):
        offline_analyse(tmp_path, mode="later")


@pytest.mark.parametrize(
    "names",
    [
        # By the times in the names, though the older one was written last.
        ("h_1_20260102030405000_ascend_ms", "h_2_20250102030405000_ascend_ms"),
        # By the times of the files, where a name has no time.
        ("second", "first"),
    ],
)
def test_of_two_profiles_of_a_rank_the_newest_is_read_with_a_warning(tmp_path, names):
    newer, older = tmp_path / names[0], tmp_path / names[1]
    cpu_profile(older, steps=3)
    cpu_profile(newer, steps=5)
    later = newer if names[0] == "second" else older
    for path in later.iterdir():
        os.utime(path, ns=(2**62, 2**62))
    [rank] = offline_analyse(tmp_path).ranks
    assert rank.folder == newer
    assert rank.operators[0].n_runs == 5
    [finding] = rank.findings
    assert (finding.code, finding.detail) == ("several_profiles", f"not read: {older}")


def test_a_timeline_is_not_chosen_of_several_profiles(tmp_path, said):
    cpu_profile(tmp_path / "one")
    cpu_profile(tmp_path / "two")
    with pytest.raises(ProfileError, match="several profiles") as caught:
        longpole.read_trace(tmp_path)
    said(caught.value.hint)


def test_files_of_a_rank_elsewhere_that_hold_no_profile_are_no_second_one(tmp_path):
    cpu_profile(tmp_path / "profiler")
    (tmp_path / "logs").mkdir()
    write(tmp_path / "logs/profiler_info_0.json", "{}")
    assert offline_analyse(tmp_path).ranks[0].folder == tmp_path / "profiler"


def test_memory_and_flops_are_summed_up(tmp_path):
    header = "Timestamp(ns),Total Allocated(Byte),Total Reserved(Byte),Total Active(Byte)"
    write(tmp_path / "cpu_ms_memory_record_0.txt", header, "1,10,99,5", "2,30,50,7", "3,20,80,9")
    columns = "full_op_name,MFLOPs(10^6),GFLOPS(10^9),MFLOPs utilization(%)"
    write(tmp_path / "flops_0.txt", columns, "a,1000,1,1", "b,3000,10,1")
    host_file(tmp_path, host_line("E", 2, 9, memory=7), host_line("F", 2, 10, memory=5))
    [rank] = offline_analyse(tmp_path).ranks
    allocator, process = rank.memory
    assert (allocator.peak_allocated_bytes, allocator.peak_at_ns) == (30, 2)
    assert (allocator.peak_reserved_bytes, allocator.peak_active_bytes) == (99, 9)
    assert (process.peak_rss_bytes, process.peak_stage) == (7 * 1024, "E::S")
    # 4e9 operations in 1 s and 0.3 s; MindSpore divides the sum of rates by the sum of times.
    assert rank.flops.operations == 4e9
    assert rank.flops.operations_per_s == pytest.approx(4e9 / 1.3)


def test_a_peak_without_a_time_has_none(tmp_path):
    host_file(tmp_path, host_line("F", 2, "N/A", memory=5), host_line("E", 2, 9))
    [rank] = offline_analyse(tmp_path).ranks
    [process] = rank.memory
    assert (process.peak_rss_bytes, process.peak_at_ns) == (5 * 1024, None)


def test_a_pair_of_files_of_which_one_is_missing_is_a_finding(tmp_path):
    write(tmp_path / "cpu_op_detail_info_0.csv", DETAIL)
    [rank] = offline_analyse(tmp_path).ranks
    assert rank.operators is None
    assert [each.code for each in rank.findings] == ["missing_file"]


def test_files_that_are_not_read_are_refused_by_name(tmp_path):
    cpu_profile(tmp_path)
    for name in ("memory_usage_0.pb", "op_range_0", "hccl_raw_0.csv", "framework_raw_0.csv"):
        (tmp_path / name).write_bytes(b"x")
    [rank] = offline_analyse(tmp_path).ranks
    refused = {each.file: each.detail for each in rank.findings if each.code == "refused"}
    assert refused.keys() == {
        "memory_usage_0.pb",
        "op_range_0",
        "hccl_raw_0.csv",
        "framework_raw_0.csv",
    }
    assert "msprof --export=on" in refused["hccl_raw_0.csv"]
