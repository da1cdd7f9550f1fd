"""The timer of steps that a profiler with a schedule leaves out."""

import json
import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

import longpole
from longpole.engine.recording_cost import timings_of
from longpole.recording import step_timer as module
from longpole.testing import TraceBuilder

ROOT = Path(__file__).parents[2]
FENCED = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Profiler:
    """Follows a schedule as that of PyTorch does, and notes the metadata that it gets.

    Preparing a recording takes a second, which is no part of a step.
    """

    def __init__(self, clock, *actions):
        self.clock = clock
        self.actions = [*actions, "NONE"]
        self.step_num = 0
        self.metadata = {}

    def schedule(self, number):
        return SimpleNamespace(name=self.actions[min(number, len(self.actions) - 1)])

    @property
    def current_action(self):
        return self.schedule(self.step_num)

    def step(self):
        self.step_num += 1
        if self.current_action.name != "NONE":
            self.clock.now_ns += 1_000_000_000

    def add_metadata_json(self, name, text):
        assert self.current_action.name.startswith("RECORD")
        self.metadata[name] = text


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A clock that steps of the program move, and synchronizations do not."""
    made = SimpleNamespace(now_ns=0)
    monkeypatch.setattr(module.time, "perf_counter_ns", lambda: made.now_ns)
    monkeypatch.setattr(module, "_synchronize", lambda: None)
    return made


def timed(clock, actions, lengths_ns, **settings):
    profiler = Profiler(clock, *actions)
    timer = longpole.time_steps(profiler, **settings)
    for length_ns in lengths_ns:
        clock.now_ns += length_ns
        timer.step()
    return profiler, timer


def test_steps_before_the_recording_are_timed_in_groups_and_read_back(clock):
    actions = ["NONE"] * 13 + ["WARMUP"] * 2 + ["RECORD", "RECORD_AND_SAVE"]
    lengths_ns = [90_000] * 3 + [10_000] * 5 + [12_000] * 5 + [70_000] * 4
    profiler, timer = timed(clock, actions, lengths_ns)
    assert timer.step_time_ns == [10_000, 12_000]
    builder = TraceBuilder()
    for number in range(4):
        at_us = 100 * number
        builder.step(number, (at_us, at_us + 90))
        builder.launch("gemm", call=(at_us, at_us + 10), work=(at_us + 10, at_us + 90))
    document = json.loads(builder.to_bytes())
    document["longpole"] = json.loads(profiler.metadata["longpole"])
    trace = longpole.read_trace(json.dumps(document).encode())
    assert timings_of(trace.core.header).before_ns == (10_000, 12_000)
    assert trace.recording_cost()["timed_ns"] == (10_000, 12_000)


def test_a_shorter_group_before_the_recording_counts_if_it_has_several_steps(clock):
    actions = ["NONE"] * 6 + ["RECORD_AND_SAVE"]
    lengths_ns = [90_000, 10_000, 10_000, 10_000, 14_000, 16_000, 70_000]
    _, timer = timed(clock, actions, lengths_ns, warm_up=1, timed_steps=3)
    assert timer.step_time_ns == [10_000, 15_000]


def test_a_profiler_that_records_too_early_gets_a_warning_and_no_times(clock):
    with pytest.warns(longpole.RecordingWarning, match="no step was timed"):
        profiler, timer = timed(clock, ["NONE", "RECORD", "RECORD_AND_SAVE"], [5_000] * 5)
    assert (timer.step_time_ns, profiler.metadata) == ([], {})


def test_each_recording_of_a_schedule_that_repeats_gets_the_times_so_far(clock):
    actions = (["NONE"] * 5 + ["RECORD_AND_SAVE"]) * 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        profiler, timer = timed(clock, actions, [10_000] * 14, warm_up=0, timed_steps=2)
    assert json.loads(profiler.metadata["longpole"])["step_time_ns"]["before"] == [10_000] * 4
    assert len(timer.step_time_ns) >= 4


def example():
    """Return the code that docs/recording-cost.md shows."""
    text = (ROOT / "docs/recording-cost.md").read_text(encoding="utf-8")
    return next(block for block in FENCED.findall(text) if "longpole.time_steps" in block)


@pytest.mark.needs("torch")
def test_the_example_of_the_page_writes_the_times_to_its_trace(tmp_path, monkeypatch):
    import torch

    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    names = {"longpole": longpole, "torch": torch, "loader": range(25)}
    names["train"] = lambda _: torch.randn(200, 200).mm(torch.randn(200, 200)).sum().item()
    exec(compile(example(), "recording-cost.md", "exec"), names)  # noqa: S102
    found = timings_of(longpole.read_trace("trace.json.gz").core.header)
    assert len(found.before_ns) == 2
    assert found.before_ns == tuple(names["timer"].step_time_ns[:2])


def test_numbers_of_steps_and_the_profiler_are_checked(clock):
    with pytest.raises(ValueError, match="timed_steps"):
        longpole.time_steps(Profiler(clock), timed_steps=0)
    with pytest.raises(TypeError, match=r"profiler.*torch\.profiler\.profile"):
        longpole.time_steps("trace.json")
