"""`longpole table TRACE events --around N`: where an event stands, from the number in an answer."""

from __future__ import annotations

import pytest

import longpole
from longpole.cli.program import run
from longpole.testing import TraceBuilder


def built():
    builder = TraceBuilder().step(1, (0, 500))
    builder.operator("aten::linear", (10, 90)).operator("aten::addmm", (20, 80))
    builder.launch("gemm", call=(30, 40), work=(50, 200))
    for at in (100, 120, 140):
        builder.operator(f"aten::op{at}", (at, at + 10))
    return builder.launch("add", call=(145, 148), work=(250, 300))


def around(trace, name):
    [number] = trace.events.filter(trace.events["name"].cast(str) == name)["event"]
    return longpole.events(trace, around=number).select("relation", "name").rows()


def test_an_operator_stands_in_its_stack_between_its_neighbours():
    assert around(built().read(), "aten::op120") == [
        ("enclosing", "ProfilerStep#1"),
        ("before", "aten::linear"),
        ("before", "aten::op100"),
        ("itself", "aten::op120"),
        ("after", "aten::op140"),
    ]


def test_what_an_operator_or_call_launched_is_listed_last():
    trace = built().read()
    assert around(trace, "aten::addmm")[-1] == ("launches", "gemm")
    [call] = trace.launches.filter(trace.launches["event"] == 4)["call"]
    assert longpole.events(trace, around=call)["relation"].to_list()[-2:] == ["itself", "launches"]


def test_an_activity_stands_in_the_stack_of_its_launch_and_on_its_stream():
    assert around(built().read(), "add") == [
        ("enclosing", "ProfilerStep#1"),
        ("enclosing", "aten::op140"),
        ("enclosing", "cudaLaunchKernel"),
        ("before", "gemm"),
        ("itself", "add"),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["events", "--around", "4711"], "the trace has no event 4711; events are 0 to 9"),
        (["events", "--around", "-1"], "-1 is not in the range"),
        (["events", "--around", "1", "--step", "1"], "leave out the window"),
        (["kernels", "--around", "1"], "--around is an option of events, not of kernels"),
    ],
)
def test_what_cannot_be_looked_up_is_said(options, message, tmp_path, capsys):
    path = str(built().write(tmp_path / "trace.json"))
    assert run(["table", path, *options]) == 2
    assert message in capsys.readouterr().err


def test_the_summary_says_how_to_look_up_an_event(tmp_path, capsys, said):
    path = str(built().write(tmp_path / "trace.json"))
    assert run(["summary", path]) in {0, 4}
    said.within(" ".join(capsys.readouterr().out.split()))
    assert run(["table", path, "events", "--around", "0"]) == 0
    assert "itself" in capsys.readouterr().out
