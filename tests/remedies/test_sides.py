"""Sides and remedies are compared over the same costs of recording, in the step that is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import longpole
from longpole.cli.program import run
from longpole.cli.whatif.computed import _changed
from longpole.engine.critical_path.changes import Scale
from longpole.engine.question import Question
from longpole.remedies.gains import gains_after, gains_of_sides
from longpole.testing import TraceBuilder

RECORDINGS = Path(__file__).parents[1] / "recordings"
NAMES = ("decode.before", "download.before", "masks.before", "masks.after", "kernels.before")


@pytest.fixture(scope="module", params=NAMES)
def trace(request):
    return longpole.read_trace(RECORDINGS / f"{request.param}.json.gz").without_profiler()


def test_after_no_change_each_side_gains_what_it_gains():
    window = Question().core_window()
    trace = longpole.read_trace(RECORDINGS / "decode.before.json.gz")
    _, facts = trace.core.verdict(window, data_load=None, step_name=None, every_window=True)
    gains = gains_of_sides(facts)
    after = gains_after(facts, [])
    assert gains.keys() == {*after, "waits"}
    for side, gain in after.items():
        assert gain == pytest.approx(gains[side].value)
        assert gains[side].sides == (side,)


def test_a_remedy_of_one_side_gains_no_more_than_the_side(trace):
    verdict = trace.verdict()
    for row in verdict.remedies:
        delays = any(it.kind == "kernel_delay" for it in row.hopeful_changes)
        if len(row.sides) == 1 and not delays:
            whole = verdict.gains[row.sides[0]]
            assert row.gain.high <= whole.high + 0.005, (row.remedy, row.gain, whole)


def test_a_remedy_that_gains_more_than_its_side_says_what_else_it_shortens():
    trace = longpole.read_trace(RECORDINGS / "download.before.json.gz").without_profiler()
    verdict = trace.verdict()
    [copies] = [row for row in verdict.remedies if row.remedy == "pinned_copies"]
    assert verdict.sides == ("copies",)
    assert copies.gain.high > verdict.gains["copies"].high
    assert copies.saves[2].endswith(", including host work and waits of the host")


def test_what_a_copy_without_pinned_memory_brings_about_is_no_remedy_of_its_own():
    trace = longpole.read_trace(RECORDINGS / "download.before.json.gz").without_profiler()
    [gap] = [it for it in trace.verdict().remedies if it.remedy == "python_between_operators"]
    assert gap.gain.low > 0.04
    assert not gap.named
    assert not gap.is_listed


def test_the_first_event_of_a_remedy_is_in_the_shown_step(trace):
    path, starts = trace.critical_path(), trace.events["start_ns"]
    for row in trace.verdict().remedies:
        is_shown = bool(row.events) and path.window[0] <= starts[row.events[0]] < path.window[1]
        assert is_shown or not row.is_listed, row.remedy


def test_one_remedy_is_shown_with_what_changes_in_the_graph(said, capsys):
    path = str(RECORDINGS / "download.before.json.gz")
    assert run(["whatif", path, "--remedy", "pinned_copies"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    verdict = longpole.read_trace(path).without_profiler().verdict()
    [row] = [row for row in verdict.remedies if row.remedy == "pinned_copies"]
    assert f"1. pinned_copies: {row.saves[2]}" in out
    said.within(out)
    said.within(out)
    said.within(out)
    said.within(out)
    assert "Measured: pinned_download: " in out
    line = verdict.plan.lines[0]
    assert run(["whatif", path]) == 0
    assert f"1. {line.told}" in " ".join(capsys.readouterr().out.split())


def test_a_remedy_that_finds_nothing_says_so(said, tmp_path, capsys):
    builder = TraceBuilder().step(0, (0, 1_000))
    builder.launch("gemm", call=(1, 5), work=(6, 990)).call("cudaDeviceSynchronize", (6, 992))
    path = str(builder.write(tmp_path / "trace.json"))
    assert run(["whatif", path, "--remedy", "loader_workers"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    said.within(told)
    assert run(["whatif", path, "--remedy", "tensor_cores"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    said.within(told)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 30), st.integers(1, 9)), max_size=8))
def test_segments_inside_overlapping_ranges_are_counted_as_changed(drawn):
    ranges = [(lane, start, start + length) for lane, start, length in drawn]
    found = _changed(TraceBuilder().read(), [Scale(by=0.5, time_ranges=ranges or [(2, 0, 1)])])
    for lane in (0, 1):
        for at in range(42):
            expected = any(of == lane and start <= at < end for of, start, end in ranges)
            assert found.has("operator", None, lane, at) == expected
