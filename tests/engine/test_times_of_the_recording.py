"""`--window` takes times of the recording, whatever time the profiler added before them."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import longpole
from longpole.cli.program import run
from longpole.engine.windows import choose_window
from longpole.testing import TraceBuilder

DECODE = Path(__file__).parents[1] / "recordings/decode.before.json.gz"


@pytest.fixture(scope="module")
def recorded():
    return longpole.read_trace(DECODE)


@pytest.fixture(scope="module")
def shorter(recorded):
    return recorded.without_profiler()


def test_a_step_stays_the_same_step(recorded, shorter):
    moments = ["window_start_ns", "window_end_ns"]
    then, now = (trace.steps.select(moments).rows() for trace in (recorded, shorter))
    for (start_ns, end_ns), (start_now_ns, end_now_ns) in zip(then, now, strict=True):
        near = pytest.approx(0, abs=0.02 * (end_now_ns - start_now_ns))
        assert shorter.map_recorded_time(start_ns) - start_now_ns == near
        assert shorter.map_recorded_time(end_ns) - end_now_ns == near
        assert end_now_ns - start_now_ns < 0.9 * (end_ns - start_ns)


def test_a_kernel_starts_when_it_starts_then(recorded, shorter):
    both = recorded.events.with_columns(start_now_ns=shorter.events["start_ns"])
    kernels = both.filter(pl.col("kind").cast(str) == "kernel").gather_every(25)
    assert kernels.height > 20
    for kernel in kernels.iter_rows(named=True):
        assert shorter.map_recorded_time(kernel["start_ns"]) == kernel["start_now_ns"]


def test_times_on_an_idle_device_move_with_the_host(recorded, shorter):
    both = recorded.events.with_columns(start_now_ns=shorter.events["start_ns"])
    first = both.filter(pl.col("kind").cast(str) == "runtime").sort("start_ns").row(0, named=True)
    assert first["start_ns"] < both.filter(pl.col("kind").cast(str) == "kernel")["start_ns"].min()
    assert shorter.map_recorded_time(first["start_ns"]) == first["start_now_ns"]
    assert shorter.map_recorded_time(first["start_ns"] - 5_000) == first["start_now_ns"] - 5_000
    assert first["start_now_ns"] < first["start_ns"]


def test_a_trace_as_recorded_keeps_its_times(recorded):
    assert recorded.as_recorded is recorded
    assert recorded.map_recorded_time(12_345) == 12_345
    unknown = TraceBuilder().operator("a", (0, 5)).read().without_profiler()
    assert unknown.as_recorded is unknown


@pytest.mark.parametrize("command", ["summary", "path"])
def test_a_range_of_the_recording_is_the_step_that_it_shows(said, command, recorded, capsys):
    step = recorded.steps.row(1, named=True)
    between = f"{step['window_start_ns']}..{step['window_end_ns']}"

    def answer(*options):
        run([command, str(DECODE), *options, "--format", "json"])
        start_ns, end_ns = json.loads(capsys.readouterr().out)["scope"]["window_ns"]
        return end_ns - start_ns

    assert answer("--window", between) == pytest.approx(
        answer("--step", str(step["step"])), rel=0.02
    )
    recorded_ns = step["window_end_ns"] - step["window_start_ns"]
    assert answer("--window", between, "--as-recorded") == recorded_ns
    run([command, str(DECODE), "--window", between])
    said.within(capsys.readouterr().out)


class Scoped:
    """A trace whose scope gives its reason in words."""

    def __init__(self, words, unit, as_recorded=None):
        self.as_recorded = as_recorded or self
        self.answer = (unit, None, 0, 10, (words, words))

    def scope(self, _question=None):
        return self.answer


@pytest.mark.parametrize(("unit", "words"), [("trace", "as recorded"), ("repetition", "shorter")])
def test_the_times_that_a_reason_names_for_between_are_those_of_the_recording(unit, words):
    shorter = Scoped("shorter", unit, as_recorded=Scoped("as recorded", unit))
    window = choose_window(shorter)
    assert (window.reason, window.clause) == (words, words)
