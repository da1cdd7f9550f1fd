"""`--window` takes times of the recording, whatever time the profiler added before them."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longpole
from longpole.cli.program import run
from longpole.testing import TraceBuilder

DECODE = Path(__file__).parents[1] / "recordings/decode.before.json.gz"


@pytest.fixture(scope="module")
def recorded():
    return longpole.read_trace(DECODE)


@pytest.fixture(scope="module")
def shorter(recorded):
    return recorded.without_profiler()


def moved(shorter, start_ns, end_ns):
    return shorter.core.window_times(("between", start_ns, end_ns), step_name=None)


def test_a_step_stays_the_same_step(recorded, shorter):
    moments = ["window_start_ns", "window_end_ns"]
    then, now = (trace.steps.select(moments).rows() for trace in (recorded, shorter))
    for (start_ns, end_ns), (start_now_ns, end_now_ns) in zip(then, now, strict=True):
        near = pytest.approx(0, abs=0.02 * (end_now_ns - start_now_ns))
        found = moved(shorter, start_ns, end_ns)
        assert (found[0] - start_now_ns, found[1] - end_now_ns) == (near, near)
        assert end_now_ns - start_now_ns < 0.9 * (end_ns - start_ns)


@pytest.mark.parametrize("name", ["decode.before", "masks.before", "kernels.before", "threads"])
@pytest.mark.parametrize("step", [None, 3])
def test_predictions_are_about_the_step_that_was_recorded(name, step):
    recorded = longpole.read_trace(DECODE.with_name(f"{name}.json.gz"))
    answer = recorded.answer(longpole.Question(step=step))
    then, now = answer.as_recorded, answer
    assert (then.window.step, then.window.reason) == (now.window.step, now.window.reason)
    assert now.window.duration_ns <= then.window.duration_ns
    assert now.verdict.window.length_ns == now.window.duration_ns
    assert then.path.window == then.window.span
    if step is None and answer.recording_cost["status"] != "unknown":
        cost = answer.recording_cost
        assert cost["recorded_step_ns"] == then.window.duration_ns
        assert cost["step_ns"] == now.window.duration_ns


@given(part=st.lists(st.floats(0, 1), min_size=2, max_size=2, unique=True).map(sorted))
@settings(max_examples=40, deadline=None)
def test_a_part_of_a_part_stays_inside_of_it(part, recorded, shorter):
    begin_ns, last_ns = recorded.span
    start_ns, end_ns = (round(begin_ns + it * (last_ns - begin_ns)) for it in part)
    middle_ns = (start_ns + end_ns) // 2
    start_now_ns, end_now_ns = moved(shorter, start_ns, end_ns)
    assert start_now_ns <= end_now_ns
    if end_ns - start_ns > 100_000:
        assert start_now_ns < end_now_ns
    assert moved(shorter, start_ns, middle_ns)[0] <= moved(shorter, middle_ns, end_ns)[1]


def test_times_on_an_idle_device_move_with_the_host(recorded, shorter):
    both = recorded.events.with_columns(start_now_ns=shorter.events["start_ns"])
    first = both.filter(pl.col("kind").cast(str) == "runtime").sort("start_ns").row(0, named=True)
    last_ns = both.filter(pl.col("kind").cast(str) == "kernel")["start_ns"].min()
    assert first["start_ns"] < last_ns
    then_ns, now_ns = first["start_ns"], first["start_now_ns"]
    assert moved(shorter, then_ns, last_ns)[0] == now_ns
    assert now_ns - 10_000 < moved(shorter, then_ns - 5_000, last_ns)[0] < now_ns
    assert now_ns < then_ns


def test_times_of_a_thread_move_there_and_back(recorded, shorter):
    both = recorded.events.with_columns(
        start_now_ns=shorter.events["start_ns"], now_ns=shorter.events["duration_ns"]
    )
    calls = both.filter(pl.col("kind").cast(str) == "runtime").gather_every(9)
    assert calls.height > 20
    for call in calls.iter_rows(named=True):
        now = call["start_now_ns"], call["start_now_ns"] + call["now_ns"]
        then = call["start_ns"], call["start_ns"] + call["duration_ns"]
        assert shorter.core.recorded_times(call["lane"], now) == then


def test_a_trace_as_recorded_keeps_its_times(recorded):
    assert recorded.as_recorded is recorded
    assert recorded.core.window_times(("between", 0, 10**18), step_name=None) == (0, 10**18)
    unknown = TraceBuilder().operator("a", (0, 5)).read().without_profiler()
    assert unknown.as_recorded is unknown


@pytest.mark.parametrize("command", ["summary", "path"])
def test_a_range_of_the_recording_is_the_step_that_it_shows(command, recorded, capsys):
    step = recorded.steps.row(1, named=True)
    between = f"{step['window_start_ns']}..{step['window_end_ns']}"

    def answer(*options):
        run([command, str(DECODE), *options, "--format", "json"])
        return json.loads(capsys.readouterr().out)

    by_times, by_number = (
        answer("--window", between),
        answer("--step", str(step["step"])),
    )
    assert by_times["scope"]["window_ns"] == by_number["scope"]["window_ns"]
    assert by_times["scope"]["window_ns"] == [step["window_start_ns"], step["window_end_ns"]]
    lengths = [it["data"]["verdict"]["window"]["length_ns"] for it in (by_times, by_number)]
    assert lengths[0] == lengths[1] < step["window_end_ns"] - step["window_start_ns"]
