"""Timelines of Ascend profiles: what an event is, where it happened, and what belongs together."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import longpole
from ascend_profiles import BASE_US, LAUNCHER, PROGRAM, AscendBuilder, late_peer
from longpole.cli import program
from longpole.formats.read import read_trace
from longpole.testing import TraceBuilder

if TYPE_CHECKING:
    from pathlib import Path

START_NS = BASE_US * 1000


def kinds(builder: AscendBuilder) -> list[tuple[str, str]]:
    return list(builder.read().events.select("name", pl.col("kind").cast(pl.String)).iter_rows())


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        ("AI_CORE", "kernel"),
        ("AI_VECTOR_CORE", "kernel"),
        ("AI_CPU", "kernel"),
        ("DSA_SQE", "kernel"),
        ("PCIE_DMA_SQE", "copy"),
        ("MEMCPY_ASYNC", "copy"),
        ("EVENT_WAIT_SQE", "synchronization"),
        ("NOTIFY_WAIT", "synchronization"),
        ("EVENT_RECORD", "device_task"),
        ("PLACE_HOLDER_SQE", "device_task"),
    ],
)
def test_the_type_of_a_task_says_what_it_is(task: str, kind: str) -> None:
    assert kinds(AscendBuilder().task("x", (0, 1), 1, kind=task)) == [("x", kind)]


def test_the_first_connection_of_a_profile_has_the_number_zero() -> None:
    builder = AscendBuilder().launch("Add", (0, 5), (10, 20), 0).launch("Mul", (6, 9), (21, 30), 1)
    assert builder.read().launches["call"].null_count() == 0
    twice = AscendBuilder().task("Add", (10, 20), 0).launch("Mul", (0, 5), (21, 30), 0)
    assert twice.read().launches["call"].null_count() == 2


def test_an_unknown_type_of_task_is_no_work_and_is_reported() -> None:
    trace = AscendBuilder().task("x", (0, 1), 1, kind="QUANTUM_CORE").read()
    assert trace.events["kind"].to_list() == ["device_task"]
    assert trace.diagnostics["code"].to_list() == ["unknown_task_type"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("aclnnMuls_MulAiCore_Mul", "kernel"), ("EVENT_RECORD", "device_task")],
)
def test_a_task_of_the_type_other_is_what_its_name_says(name: str, kind: str) -> None:
    assert kinds(AscendBuilder().task(name, (0, 1), 1, kind="Other")) == [(name, kind)]


def test_the_summary_says_how_many_tasks_of_a_device_are_of_unknown_types(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], said: Any
) -> None:
    builder = AscendBuilder().task("MatMul", (0, 9), 1, kind="AI_CORE")
    path = builder.task("x", (9, 30), 1, kind="QUANTUM_CORE").write(tmp_path / "trace_view.json")
    program.run(["summary", str(path)])
    text = " ".join(capsys.readouterr().out.split())
    said.within(text)


def test_a_collective_is_one_kernel_on_the_stream_of_its_tasks() -> None:
    trace = late_peer().read()
    found = trace.events.filter(kind="kernel").select("name", "device", "stream")
    assert found.rows() == [("MatMul", 0, 2), ("hcom_allReduce__586_0_1", 0, 4)]
    assert trace.events.filter(kind="device_task").height == 8
    collective = trace.collectives.row(0, named=True)
    assert (collective["group"], collective["sequence"], collective["group_size"]) == ("586", 0, 6)
    assert (collective["operation"], collective["bytes"]) == ("all_reduce", 4096)


def test_what_the_profiler_computed_is_no_work_of_the_device() -> None:
    builder = late_peer().overlap_track("Computing", (0, 999), 0)
    assert_frame_equal(
        builder.read().busy(START_NS, START_NS + 1_000_000),
        late_peer().read().busy(START_NS, START_NS + 1_000_000),
    )
    assert kinds(builder)[-1] == ("Computing", "derived")


def test_calls_of_cann_stand_on_the_thread_of_the_program_that_made_them() -> None:
    builder = AscendBuilder().operator("aten::mm", (0, 9)).launch("MatMul", (2, 4), (5, 8), 7)
    trace = builder.read()
    call = trace.events.filter(kind="runtime").row(0, named=True)
    assert (call["process"], call["thread"]) == (str(PROGRAM), str(PROGRAM))
    assert trace.launches.select("call", "operator", "linked_by").rows() == [(1, 0, "correlation")]


def test_a_queued_launch_belongs_to_the_operator_that_enqueued_it() -> None:
    builder = (
        AscendBuilder()
        .operator("aten::mm", (0, 9))
        .queue(31, (2, 3), (20, 29))
        .call("Node@launch", (22, 25), 7, LAUNCHER)
        .task("MatMul", (25, 40), 7)
    )
    trace = builder.read()
    assert trace.launches["operator"].to_list() == [0]
    path = trace.critical_path(whole=True)
    names = path.segments["name"].cast(pl.String).rle().struct.field("value").to_list()
    assert names == ["aten::mm", "Enqueue", "Dequeue@op", "Node@launch", "MatMul"]


def test_steps_are_annotations_although_listed_among_the_operators() -> None:
    trace = late_peer().read()
    assert trace.steps["step"].to_list() == [7]


def test_names_of_processes_may_stand_behind_the_events() -> None:
    builder = late_peer()
    first, last = (
        read_trace(builder.to_text(metadata_last=late).encode()).events.drop("position")
        for late in (False, True)
    )
    assert_frame_equal(first, last)


def test_stamps_in_quotes_are_exact() -> None:
    trace = AscendBuilder().task("x", (0.001, 0.003), 1).task("y", (7.77, 9.011), 1).read()
    assert (trace.events["start_ns"] - START_NS).to_list() == [1, 7_770]
    assert trace.events["duration_ns"].to_list() == [2, 1_241]


def test_a_process_of_a_common_name_makes_no_ascend_profile() -> None:
    builder = TraceBuilder().launch("gemm", call=(0, 1), work=(2, 5))
    named = {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "Python"}}
    assert builder.event(**named).read().events["kind"].to_list() == ["runtime", "kernel"]


def test_the_verdict_names_the_rank_that_the_collectives_wait_for(said: Any) -> None:
    text = str(late_peer().read().verdict())
    assert "communication limits it" in text
    said.within(text)
    said.within(text)
    said.within(text)


def test_collectives_are_split_into_waiting_and_moving() -> None:
    row = longpole.collective_waits(late_peer().read()).row(0, named=True)
    assert (row["waiting_ns"], row["moving_ns"]) == (770_000, 30_000)
    assert (row["awaited_peer"], row["awaited_ns"]) == (5, 770_000)


def test_a_stream_goes_on_when_the_event_it_waits_for_is_recorded() -> None:
    builder = (
        AscendBuilder()
        .step(1, (0, 8))
        .launch("first", (0, 2), (10, 20), 1)
        .call("Node@launch", (3, 4), 2)
        .task("other", (12, 300), 2, stream=3)
        .task("EVENT_RECORD", (300.5, 300.6), 3, stream=3, kind="EVENT_RECORD_SQE")
        .task("EVENT_WAIT", (21, 301), 4, kind="EVENT_WAIT_SQE")
        .launch("second", (5, 6), (302, 350), 5)
    )
    path = builder.read().critical_path()
    names = path.segments.filter(kind="kernel")["name"].to_list()
    assert names == ["other", "second"]


def test_a_graph_without_numbers_is_launched_by_the_call_that_holds_it() -> None:
    builder = AscendBuilder()
    builder.call("GE@Infer", (0, 100), 0)
    builder.task("a", (10, 40), 0).task("b", (41, 90), 0)
    trace = builder.read()
    assert trace.launches["linked_by"].to_list() == ["holder", "holder"]
    assert trace.critical_path(whole=True).segments.filter(kind="kernel").height == 2


def test_a_file_cut_anywhere_gives_the_events_before_the_cut() -> None:
    text = late_peer().to_text().encode()
    whole = late_peer().read().n_events
    for percent in range(2, 100):
        trace = read_trace(text[: len(text) * percent // 100])
        assert trace.n_events <= whole
        assert {"truncated", "missing_end"} & set(trace.diagnostics["code"])


def test_bad_bytes_and_stamps_cost_what_they_touch() -> None:
    events = json.loads(late_peer().to_text())
    events[-1]["ts"] = "1.73641E+15x"
    damaged = json.dumps(events).encode().replace(b"MatMul", b"Mat\xffMul")
    trace = read_trace(damaged)
    assert set(trace.diagnostics["code"]) == {"bad_timestamp", "invalid_utf8"}
    assert trace.n_events == len(events) - 1


def test_a_folder_is_read_by_its_timeline(tmp_path: Path) -> None:
    late_peer().write(tmp_path / "a_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "trace_view.json")
    expected = late_peer().read().events
    for folder in (".", "a_ascend_pt", "a_ascend_pt/ASCEND_PROFILER_OUTPUT"):
        assert_frame_equal(read_trace(tmp_path / folder).events, expected)
