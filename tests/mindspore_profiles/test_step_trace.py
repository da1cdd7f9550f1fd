"""Steps of a GPU in both shapes of the file, and MindSpore's own tables of them."""

from __future__ import annotations

import csv

import pytest

import longpole
from longpole.mindspore import ProfileError, read_step_trace, timeline_events
from longpole.mindspore.findings import Findings
from longpole.mindspore.layouts import find_ranks
from longpole.mindspore.step_trace import compatible_step_trace, read_step_detail, read_steps
from mindspore_files import given, write


def as_mindspore(path):
    return read_steps(path, Findings(), as_mindspore=True)


ASYNC = (
    "Default/A,1000 Default/B,1100 Gradients/C,1500 Default/D,1900 Default/AllReduce-op5,1600,1700"
)


def test_collectives_of_a_sync_file_have_columns_where_mindspore_ends():
    path = given("synthetic", "gpu_sync", "step_trace_profiling_0.txt")
    header, first, *_ = compatible_step_trace(as_mindspore(path), is_training=True).splitlines()
    row = dict(zip(header.split(","), first.split(","), strict=True))
    words = path.read_text().splitlines()[3].split()[1].split(",")
    assert row["stream_ops_0_AllReduce-op5_start_point"] == words[0]
    assert row["stream_ops_0_AllReduce-op5"] == str(int(words[1]) - int(words[0]))


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
    text = compatible_step_trace(as_mindspore(path), is_training=False)
    assert "bp_point" not in text


def test_compat_joins_the_times_of_a_collective_of_an_inference_as_mindspore_does(tmp_path):
    line = ASYNC.replace("Gradients", "Default")
    path = write(tmp_path / "step_trace_profiling_0.txt", line)
    header, first, mean = compatible_step_trace(as_mindspore(path), is_training=False).splitlines()
    name = "stream_ops_0_AllReduce-op5"
    assert header == (
        f"step_num,start_point,end_point,total,fp_point,iteration_interval,fp_and_bp,tail,{name},fp"
    )
    # MindSpore adds the last two columns, which are texts here: 160 and 170.
    assert first == "1,100,190,90,110,10,40,40,10,160170"
    assert mean == "-,100,190,90,110,10,40,40,10,330"


def test_compat_leaves_rows_before_the_first_collective_short_as_mindspore_does(tmp_path):
    plain = " ".join(ASYNC.split()[:4])
    path = write(tmp_path / "step_trace_profiling_0.txt", plain, ASYNC)
    _, first, second, mean = compatible_step_trace(
        as_mindspore(path), is_training=True
    ).splitlines()
    assert first == "1,100,190,90,110,150,10,40,40"
    assert second == "2,100,190,90,110,150,10,40,40,10,160,170"
    assert mean == "-,100,190,90,110,150,10,40,40"


def test_steps_of_a_sync_file_do_not_overlap(tmp_path):
    path = write(
        tmp_path / "step_trace_profiling_0.txt",
        "Default/A 100,110 200,210",
        "Gradients/B 120,130 220,230",
        "Default/C 140,150 240,250",
    )
    trace = read_step_trace(path)
    assert [(step.start_ns, step.end_ns) for step in trace.steps] == [(1000, 1500), (1500, 2500)]
    # MindSpore lets the second begin where the last operator of the first started.
    second = compatible_step_trace(as_mindspore(path), is_training=True).splitlines()[2]
    assert second.startswith("2,140,250,110")


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
