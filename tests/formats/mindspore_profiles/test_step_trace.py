"""Steps of a GPU in both forms of the file, compared with MindSpore's own tables of them."""

from __future__ import annotations

import csv
import json

import pytest

import longpole
from longpole.formats.mindspore.findings import Findings
from longpole.formats.mindspore.layouts import find_ranks
from longpole.formats.mindspore.step_trace import read_step_detail, read_steps
from longpole.mindspore import ProfileError, read_step_trace, timeline_events
from mindspore_files import given, write

ASYNC = (
    "Default/A,1000 Default/B,1100 Gradients/C,1500 Default/D,1900 Default/AllReduce-op5,1600,1700"
)


def test_the_collectives_of_a_sync_file_are_of_their_steps():
    path = given("synthetic", "gpu_sync", "step_trace_profiling_0.txt")
    lines = [line.split() for line in path.read_text().splitlines()]
    for place, step in enumerate(read_step_trace(path).steps, 1):
        spans = [tuple(10 * int(time) for time in line[place].split(",")) for line in lines[3:]]
        assert [(reduce.start_ns, reduce.end_ns) for reduce in step.reduces] == spans


def test_the_steps_are_those_of_the_table_that_mindspore_makes_of_the_file():
    folder = given("synthetic", "gpu_async")
    steps = read_step_trace(folder / "step_trace_profiling_0.txt").steps
    table = read_step_detail(folder / "expected_step_trace_raw_0_detail_time.csv", Findings()).steps
    assert len(steps) == len(table) > 0
    for ours, theirs in zip(steps, table, strict=True):
        parts = ("start_ns", "fp_ns", "bp_ns", "end_ns")
        assert [getattr(ours, part) // 10 * 10 for part in parts] == [
            getattr(theirs, part) for part in parts
        ]
        assert [(it.start_ns // 10 * 10, it.end_ns // 10 * 10) for it in ours.reduces] == [
            (it.start_ns, it.end_ns) for it in theirs.reduces
        ]
        assert {ours.fp_operator, ours.bp_operator} == set(points(folder)[ours.number - 1])


def points(folder):
    """Return the first operators of the forward and the last of the backward parts."""
    rows = json.loads((folder / "expected_step_trace_point_info_0.json").read_text())
    return [row.values() for row in rows]


def test_a_step_has_its_parts_in_nanoseconds(tmp_path):
    path = write(tmp_path / "step_trace_profiling_0.txt", ASYNC)
    trace = read_step_trace(path)
    [step] = trace.steps
    assert (trace.launch, trace.is_training) == ("async", True)
    assert (step.total_ns, step.interval_ns, step.fp_and_bp_ns, step.tail_ns) == (
        900,
        100,
        400,
        400,
    )
    assert step.reduces == (("Default/AllReduce-op5", 1600, 1700),)


@pytest.mark.parametrize("place", [0, 1])
def test_a_line_of_spaces_is_a_finding_and_the_steps_are_read(tmp_path, place):
    lines = [ASYNC]
    lines.insert(place, " \t ")
    path = write(tmp_path / "step_trace_profiling_0.txt", *lines)
    findings = Findings()
    assert len(read_steps(path, findings).steps) == 1
    assert [row.code for row in findings.all()] == ["bad_row"]


def test_an_inference_has_no_backward_part(tmp_path):
    path = write(tmp_path / "step_trace_profiling_0.txt", ASYNC.replace("Gradients", "Default"))
    [step] = read_step_trace(path).steps
    assert (step.bp_ns, step.tail_ns, step.fp_and_bp_ns) == (None, None, 800)


def test_steps_of_a_sync_file_do_not_overlap(tmp_path):
    path = write(
        tmp_path / "step_trace_profiling_0.txt",
        "Default/A 100,110 200,210",
        "Gradients/B 120,130 220,230",
        "Default/C 140,150 240,250",
    )
    trace = read_step_trace(path)
    assert [(step.start_ns, step.end_ns) for step in trace.steps] == [(1000, 1500), (1500, 2500)]


def test_steps_that_lack_a_point_are_left_out(tmp_path):
    path = write(tmp_path / "step_trace_profiling_0.txt", ASYNC, "Default/A,1 Default/B,2", ASYNC)
    trace = read_step_trace(path)
    assert [step.number for step in trace.steps] == [1, 2]
    assert [(each.code, each.lines) for each in trace.findings] == [("step_without_points", (2,))]


def test_points_of_different_length_give_the_steps_that_are_whole(tmp_path):
    lines = ("A 1,2 5,6", "B 2,3", "C 3,4 7,8")
    trace = read_step_trace(write(tmp_path / "step_trace_profiling_0.txt", *lines))
    assert len(trace.steps) == 1
    assert [each.code for each in trace.findings] == ["steps_unequal"]


def test_a_file_without_all_points_says_what_to_set(tmp_path):
    path = write(tmp_path / "step_trace_profiling_0.txt", "Default/A 1,2")
    with pytest.raises(ProfileError, match="1 of the three points") as caught:
        read_step_trace(path)
    assert "PROFILING_FP_START" in caught.value.hint


DETAIL = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail"


def test_a_table_that_mindspore_made_is_in_units_of_ten_nanoseconds(tmp_path):
    header = f"{DETAIL},stream_1_0_start_point,stream_1_0_end_point,stream_1_0"
    rows = ("1,100,4003147,4003047,150,900,50,750,4002247,200,300,100", "-,1,2,3,4,5,6,7,8,9,10,1")
    path = write(tmp_path / "step_trace_raw_0_detail_time.csv", header, *rows)
    [step] = read_step_detail(path, Findings()).steps
    assert step.total_ns == 40_030_470
    assert (step.interval_ns, step.fp_and_bp_ns, step.tail_ns) == (500, 7500, 40_022_470)
    assert step.reduces == (("stream_1_0", 2000, 3000),)


def test_real_tables_of_steps_agree_with_themselves():
    [files] = find_ranks(given("mindinsight_text"))
    path = files.need("step_trace_raw_detail_time")
    found = read_step_detail(path, Findings())
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row["step_num"] != "-"]
    assert len(found.steps) == len(rows) == 322
    for step, row in zip(found.steps, rows, strict=True):
        assert step.total_ns == 10 * int(row["total"])
        assert step.fp_and_bp_ns == 10 * int(row["fp_and_bp"])
        assert step.tail_ns == 10 * int(row["tail"])


def test_steps_of_a_device_with_tasks_mark_its_timeline():
    trace = longpole.read_trace(timeline_events(given("mindinsight_text")))
    assert trace.events["kind"].cast(str).to_list().count("annotation") == 15
