"""The sentence states one length: of the median step, with its range and how it is known."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import longpole
from longpole.cli.program import run
from longpole.testing import TraceBuilder

RECORDINGS = Path(__file__).parents[1] / "recordings"


@pytest.fixture(scope="module")
def recorded():
    return longpole.read_trace(RECORDINGS / "decode.before.json.gz")


def test_an_estimated_length_has_its_range_and_the_recorded_one(recorded):
    cost = recorded.recording_cost()
    sentence = recorded.without_profiler().verdict().sentence
    told = re.match(
        r"The median step takes about (\S+) ms without the profiler \((.*?)\);", sentence
    )
    assert float(told[1]) == pytest.approx(cost["step_ns"] / 1e6, abs=0.01)
    bounds = [f"{cost[key] / 1e6:.2f}" for key in ("least_step_ns", "most_step_ns")]
    recorded_ms = f"{cost['recorded_step_ns'] / 1e6:.2f}"
    estimated, runs, as_recorded = told[2].split("; ")
    assert estimated == f"estimated {bounds[0]} to {bounds[1]} ms"
    assert (runs, as_recorded) == ("runs differ by up to 10 %", f"{recorded_ms} ms recorded")


def test_a_given_length_is_said_to_be_given(recorded):
    sentence = recorded.without_profiler(step_time_ns=4_500_000).verdict().sentence
    assert sentence.startswith(
        "The median step takes 4.50 ms without the profiler, as given (5.65 ms"
    )


def test_recorded_lengths_have_the_range_of_the_steps(recorded):
    verdict = recorded.verdict()
    least, most = (
        f"{time_ns / 1e6:.2f}" for time_ns in (verdict.window.min_ns, verdict.window.max_ns)
    )
    assert verdict.sentence.startswith(f"The median step takes 5.65 ms ({least} to {most} ms); ")


def test_the_range_is_not_that_of_another_step(recorded):
    sentence = recorded.without_profiler().verdict(step=3).sentence
    as_recorded = f"{recorded.verdict(step=3).window.length_ns / 1e6:.2f} ms recorded"
    told = r"The step takes about \S+ ms without the profiler \((.*?)\);"
    assert re.match(told, sentence)[1] == as_recorded
    whole = recorded.without_profiler().verdict(whole=True).sentence
    length_ns = recorded.verdict(whole=True).window.length_ns
    assert f"without the profiler ({length_ns / 1e6:.1f} ms recorded);" in whole


@pytest.mark.parametrize("command", ["summary", "path", "whatif"])
def test_the_length_is_stated_once(command, capsys):
    assert run([command, str(RECORDINGS / "decode.before.json.gz")]) == 0
    headline, _, rest = capsys.readouterr().out.partition("\n")
    assert " ms" not in headline
    assert rest.count("without the profiler") == 1
    assert "Without the profiler" not in rest


def test_a_step_without_gpu_activities_is_not_compared(said):
    builder = TraceBuilder()
    for number, has_work in enumerate([True, True, False]):
        begin = 100 * number
        builder.step(number, (begin, begin + 100)).operator("aten::mm", (begin + 5, begin + 60))
        if has_work:
            builder.launch("gemm", call=(begin + 10, begin + 15), work=(begin + 20, begin + 90))
    trace = builder.read()
    assert trace.verdict(step=1).status == "ok"
    idle = trace.verdict(step=2)
    assert (idle.status, idle.sides, idle.remedies, idle.record) == ("no_device", (), (), None)
    said.within(idle.sentence)
    assert "shorter" not in idle.sentence


def _steps_of(*lengths_us):
    """Build steps of these lengths, each after the other, with a kernel in each."""
    builder, begin = TraceBuilder(), 0
    for number, length in enumerate(lengths_us):
        end = begin + length
        builder.step(number, (begin, end)).operator("aten::mm", (begin, begin + 20))
        builder.launch("gemm", call=(begin + 5, begin + 9), work=(begin + 10, end - 1))
        begin = end
    return builder


@pytest.mark.parametrize(
    ("lengths_us", "told"),
    [
        ((100, 100, 130), "The shorter of 2 steps takes 100 µs"),
        ((100, 100, 101), "The median step takes 100 µs"),
        ((100, 100, 130, 180), "The median step takes 130 µs"),
    ],
)
def test_of_two_unlike_steps_the_shorter_is_named_as_such(lengths_us, told):
    assert _steps_of(*lengths_us).read().verdict().sentence.startswith(told)


@pytest.mark.parametrize(
    ("end_us", "told"),
    [
        (209, "The range of 110 µs contains one whole step, 1, which takes 100 µs"),
        (339, "The range of 240 µs contains 2 whole steps, of which the shorter one takes 100 µs"),
        (459, "The range of 360 µs contains 3 whole steps, of which the median one takes 120 µs"),
        (149, "The window takes 50.0 µs"),
    ],
)
def test_a_time_range_names_the_steps_that_it_contains(end_us, told, tmp_path, capsys):
    builder = _steps_of(100, 100, 130, 120, 100)
    verdict = builder.read().verdict(between=(99_000, end_us * 1000))
    assert verdict.sentence.startswith(told)
    path = builder.write(tmp_path / "trace.json")
    between = ["--window", f"99us..{end_us}us"]
    for command in ("summary", "path", "whatif"):
        assert run([command, str(path), *between]) == 0
        assert told in " ".join(capsys.readouterr().out.split())
    assert run(["summary", str(path), *between, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["verdict"]["sentence"].startswith(told)
    assert run(["summary", str(path), *between, "--format", "html"]) == 0
    assert told in capsys.readouterr().out
