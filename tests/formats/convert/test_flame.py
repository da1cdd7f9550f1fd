"""Flame graphs of host time, device time and the critical path."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

import longpole
from longpole.formats.convert.flame import _Sums, flame, folded, speedscope
from longpole.testing import TraceBuilder
from longpole.trace.sweeps import activities
from real_traces import SHARED
from strategies import traces
from styles import STYLES, document

INFERENCE = SHARED / "open_answers" / "qwen_h100.json.gz"


def trace():
    return (
        TraceBuilder()
        .step(1, (0, 100))
        .operator("aten::mm", (0, 20))
        .launch("gemm", call=(5, 9), work=(9, 60))
        .read()
    )


def test_host_time_is_that_of_the_leaf():
    assert list(folded(flame(trace(), time="host"))) == [
        "thread 1;ProfilerStep#1 80000\n",
        "thread 1;ProfilerStep#1;aten::mm 16000\n",
        "thread 1;ProfilerStep#1;aten::mm;cudaLaunchKernel 4000\n",
    ]


def test_device_time_stands_below_the_call():
    stacks = list(flame(trace(), time="device"))
    assert stacks == [
        (("thread 1", "ProfilerStep#1", "aten::mm", "cudaLaunchKernel", "gemm"), 51_000)
    ]


def test_the_path_sums_to_its_length():
    found = trace()
    window = longpole.choose_window(found)
    assert sum(ns for _, ns in flame(found, window, time="path")) == window.duration_ns


@pytest.mark.skipif(not INFERENCE.exists(), reason=f"no trace {INFERENCE}")
def test_the_path_of_a_step_is_the_one_that_is_told_of_it():
    """A thread that waits for longer than the step does not become the end of its path."""
    found = longpole.read_trace(INFERENCE)
    times: dict[str, int] = {}
    for names, ns in flame(found, longpole.choose_window(found), time="path"):
        kind = names[-1].strip("[]")
        times[kind] = times.get(kind, 0) + ns
    path = found.critical_path()
    assert times == {row["kind"]: row["duration_ns"] for row in path.kind_totals}


def test_what_would_break_a_line_is_replaced():
    assert "".join(folded([(("a;b\n", "c"), 3)])).count("\n") == 1


def test_a_profile_of_speedscope_names_each_frame_once():
    profile = json.loads("".join(speedscope(flame(trace(), time="host"))))
    names = [frame["name"] for frame in profile["shared"]["frames"]]
    assert len(names) == len(set(names)) == 4
    assert sum(profile["profiles"][0]["weights"]) == profile["profiles"][0]["endValue"] == 100_000


def test_a_stack_that_is_too_deep_keeps_its_time():
    n = 3_000
    builder = TraceBuilder()
    for depth in range(n):
        builder.operator(f"level {depth}", (depth, 2 * n - depth))
    stacks = list(flame(builder.read()))
    assert sum(ns for _, ns in stacks) == 2 * n * 1_000
    deepest = max((names for names, _ in stacks), key=len)
    assert (len(deepest), deepest[-2:]) == (1_001, ("level 998", "(deeper)"))


def test_an_empty_profile_is_sound():
    assert json.loads("".join(speedscope([])))["profiles"][0]["samples"] == []


def test_a_time_that_is_none_is_refused():
    with pytest.raises(ValueError, match="host"):
        flame(trace(), time="cpu")


@pytest.mark.parametrize("time", ["host", "device", "path"])
def test_a_step_adds_its_own_stacks_alone(time, monkeypatch):
    builder = TraceBuilder()
    for number in range(30):
        now = 100 * number
        builder.step(number, (now, now + 90)).operator(f"aten::of_step_{number}", (now, now + 20))
        builder.launch("gemm", call=(now + 5, now + 9), work=(now + 9, now + 60))
    found = builder.read()
    added = []
    node = _Sums.node
    monkeypatch.setattr(
        _Sums, "node", lambda sums, parent, name: added.append(name) or node(sums, parent, name)
    )
    list(flame(found, longpole.choose_window(found, step=20), time=time))
    assert added
    assert {name for name in added if "of_step_" in name} <= {"aten::of_step_20"}


@given(events=traces())
def test_the_stacks_sum_to_the_time_they_show(events):
    found = longpole.read_trace(document(events, STYLES["compact"]))
    window = longpole.choose_window(found, whole=True)
    if window is None:
        return
    own = found.times_within(found.lanes.select("lane", **window.times()))["self_ns"].sum()
    works = window.clip(activities(found))["inside_ns"].sum()
    sums = [sum(ns for _, ns in flame(found, window, time=time)) for time in ("host", "device")]
    assert sums == [own, works]
