"""Steps of a GPU in both shapes of the file, and MindSpore's own tables of them."""

from __future__ import annotations

import pytest

from longpole.mindspore import ProfileError, read_step_trace
from longpole.mindspore.step_trace_compat import compatible_point_info, compatible_step_trace
from mindspore_files import given, write

ASYNC = (
    "Default/A,1000 Default/B,1100 Gradients/C,1500 Default/D,1900 Default/AllReduce-op5,1600,1700"
)


def test_the_tables_of_mindspore_are_made_byte_for_byte():
    path = given("synthetic", "gpu_async", "step_trace_profiling_0.txt")
    steps = path.with_name("expected_step_trace_raw_0_detail_time.csv").read_bytes()
    points = path.with_name("expected_step_trace_point_info_0.json").read_bytes()
    assert compatible_step_trace(path, is_training=True).encode() == steps
    assert compatible_point_info(path, is_training=True).encode() == points


def test_collectives_of_a_sync_file_have_columns_where_mindspore_ends():
    path = given("synthetic", "gpu_sync", "step_trace_profiling_0.txt")
    header, first, *_ = compatible_step_trace(path, is_training=True).splitlines()
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


def test_an_inference_has_no_backward_part(tmp_path):
    path = write(tmp_path / "step_trace_profiling_0.txt", ASYNC.replace("Gradients", "Default"))
    [step] = read_step_trace(path).steps
    assert (step.bp_ns, step.tail_ns, step.fp_and_bp_ns) == (None, None, 800)
    text = compatible_step_trace(path, is_training=False)
    assert "bp_point" not in text


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
    assert compatible_step_trace(path, is_training=True).splitlines()[2].startswith("2,140,250,110")


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
