"""A table without rows says what the trace lacks, or what the program did not do."""

from __future__ import annotations

from typing import is_typeddict

import polars as pl
import pytest

import longpole
from longpole.cli.program import run
from longpole.tables.catalogue import View, views_of
from longpole.tables.empty_tables import why_empty
from longpole.tables.questions import questions
from longpole.testing import TraceBuilder

HOST = TraceBuilder().step(1, (0, 100)).operator("aten::mm", (0, 90)).read()


def launched():
    builder = TraceBuilder().step(1, (0, 100)).step(2, (100, 200))
    return builder.operator("aten::mm", (0, 20)).launch("gemm", call=(5, 9), work=(12, 60))


VIEWS = [(name, by) for name in questions() for by in views_of(name)]


def test_every_table_that_can_be_empty_has_its_sentence():
    views = {(name, by): view for name in questions() for by, view in views_of(name).items()}
    frames = {
        key for key, view in views.items() if view.answer is None or is_typeddict(view.answer)
    }
    assert [key for key in frames if views[key].empty == View().empty] == []


@pytest.mark.parametrize(("name", "by"), VIEWS)
def test_every_table_is_explained_for_a_trace_of_the_host_alone(name, by):
    told = why_empty(name, HOST, by)
    assert told.endswith(".")
    assert "{" not in told


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("kernels", "The trace has no GPU activities: record with activities=["),
        ("gaps", "The trace has no GPU activities: record with activities=["),
        ("annotations", "The trace has no annotations besides those of steps: record with"),
        ("memory time", "The trace has no allocations: record with profile_memory=True, or give"),
    ],
)
def test_what_was_not_recorded_is_named_with_its_option(name, told):
    table, _, by = name.partition(" ")
    assert why_empty(table, HOST, by or None).startswith(told)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("copies", "The trace has no memcpys or memsets."),
        ("graph_kernels", "The trace has no launch of a CUDA graph."),
        ("communication", "The trace has no collectives; a program on one device runs none."),
        ("gaps", "No device was idle in it."),
    ],
)
def test_what_the_program_did_not_do_is_no_question_of_options(name, told):
    assert why_empty(name, launched().read()) == told


def test_what_lies_outside_the_window_points_to_the_whole_trace(tmp_path, capsys, said):
    path = launched().write(tmp_path / "trace.json")
    assert run(["table", str(path), "kernels", "--step", "2"]) == 0
    told = capsys.readouterr().out
    said.within(told)
    assert run(["table", str(path), "kernels", "--where", "stream = 99"]) == 0
    said.within(capsys.readouterr().out)


@pytest.mark.parametrize("table", ["kernels", "activities", "roofline"])
def test_a_condition_on_a_name_as_shown_is_told_the_recorded_one(table, tmp_path, capsys):
    builder = TraceBuilder().launch("nvjet_tst_64x8_TNT", call=(0, 1), work=(2, 9))
    path = str(builder.write(tmp_path / "trace.json"))
    code = 4 if table == "roofline" else 0
    assert run(["table", path, table, "--where", "name LIKE '%gemm%'"]) == code
    told = " ".join(capsys.readouterr().out.split())
    names = "Names are compared as recorded: gemm 64x8 bf16 (nvjet) is nvjet_tst_64x8_TNT."
    assert f"No row matches the condition. {names}" in told
    assert run(["table", path, table, "--where", "name = 'conv'"]) == code
    told = " ".join(capsys.readouterr().out.split())
    assert told.endswith("No row matches the condition.")
    assert run(["table", path, "kernels", "--where", "name REGEXP 'gemm|nvjet'"]) == 0
    assert "gemm 64x8 bf16 (nvjet)" in capsys.readouterr().out


def test_without_links_the_launches_are_missing():
    trace = TraceBuilder().call("cudaLaunchKernel", (0, 5)).kernel("gemm", (10, 20)).read()
    told = why_empty("launches", trace)
    assert told.startswith("The trace links no GPU activity to the call that launched it: record ")
    assert longpole.launches(trace).is_empty()


def repeated():
    builder = TraceBuilder()
    for number in range(12):
        at = 1_000 * number
        builder.operator("aten::embedding", (at, at + 20))
        builder.launch("embed", call=(at + 5, at + 9), work=(at + 12, at + 100))
        builder.operator("aten::mm", (at + 100, at + 130))
        builder.launch("gemm", call=(at + 110, at + 120), work=(at + 125, at + 700))
        builder.operator("aten::add", (at + 200, at + 230))
        builder.launch("add", call=(at + 210, at + 220), work=(at + 701, at + 800 + number))
    return builder


def test_without_marks_the_repetitions_are_the_steps(tmp_path, capsys, said):
    trace = repeated().read()
    window = longpole.choose_window(trace)
    assert window.kind == "repetition"
    found = longpole.steps(trace)
    assert found["step"].is_null().all()
    assert window.span in found.select("window_start_ns", "window_end_ns").rows()
    assert dict(found.schema) == dict(trace.steps.schema) | {"period_ns": pl.Int64}
    assert run(["table", str(repeated().write(tmp_path / "trace.json")), "steps"]) == 0
    told = capsys.readouterr().out
    said.within(told)


def test_other_annotations_can_mark_the_steps(tmp_path, capsys):
    builder = TraceBuilder()
    for number in range(4):
        builder.annotation(f"epoch {number}", (100 * number, 100 * number + 90))
    path = str(builder.write(tmp_path / "trace.json"))
    assert run(["table", path, "steps", "--step-name", "epoch", "--format", "csv"]) == 0
    assert capsys.readouterr().out.count("epoch ") == 3
    assert longpole.steps(builder.read(), step_name="epoch").filter(pl.col("step") == 2).height == 1
