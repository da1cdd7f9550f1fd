"""Start-up is the answer if it is most of what was recorded; otherwise it is named and left out."""

from __future__ import annotations

import html
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import longpole
from longpole.cli import program
from longpole.cli.mcp import tools
from longpole.testing import TraceBuilder

N_ITERATIONS = 12
ITERATION = 10_000

KINDS = ("context", "tensor", "compilation", "capture", "modules", "first launches")


def started(kind: str, start_up: int, *, busy: int = 4_000) -> TraceBuilder:
    """Build a program that starts up for a time in µs, then runs iterations without marks.

    The iterations differ, so that none of them can be chosen: the window is the whole trace.
    """
    builder = TraceBuilder()
    _start(builder, kind, start_up)
    at = start_up + 10
    for number in range(N_ITERATIONS):
        builder.operator("aten::mm", (at, at + ITERATION - 300 * number))
        call = (at + 100, at + 110)
        builder.launch(f"gemm_{number}", call=call, work=(at + 120, at + 120 + busy))
        builder.call("cudaDeviceSynchronize", (at + 130, at + 125 + busy))
        at += ITERATION - 300 * number + 5
    return builder


def _start(builder: TraceBuilder, kind: str, end: int) -> None:
    match kind:
        case "context":
            builder.call("cudaFree", (0, end))
        case "tensor":
            builder.operator("aten::empty", (0, end))
        case "compilation":
            builder.operator("_compile.compile_inner (dynamo_timed)", (0, end))
        case "capture":
            builder.call("cudaStreamBeginCapture", (0, 5))
            builder.call("cudaStreamEndCapture", (end - 40, end - 20))
            builder.call("cudaGraphInstantiate", (end - 20, end))
        case "modules":
            builder.call("cuModuleLoadData", (0, end // 2))
            builder.call("cuModuleLoadData", (end // 2, end))
        case "first launches":
            builder.launch("fill", call=(0, end - 20), work=(end - 15, end - 10))
            builder.call("cudaDeviceSynchronize", (end - 9, end))


def iterations_take() -> int:
    """Return the time of all iterations."""
    return sum(ITERATION - 300 * number + 5 for number in range(N_ITERATIONS)) + 10


@given(st.sampled_from(KINDS), st.integers(10, 90))
def test_start_up_is_the_answer_if_it_takes_more_than_half_and_else_only_named(kind, percent):
    start_up = round(iterations_take() * percent / (100 - percent))
    verdict = started(kind, start_up).read().verdict(whole=True)
    found = verdict.start_up
    assert found is not None
    assert found.share == pytest.approx(percent / 100, abs=0.01)
    assert found.duration_ns == pytest.approx(1_000 * start_up, rel=0.02)
    lines = [line.remedy for line in verdict.plan.lines]
    assert found.is_answer == (found.share > 0.5)
    if found.is_answer:
        assert lines == ["warm_up"]
        assert verdict.actions[0].startswith("Record a later step")
        assert "saves" not in verdict.actions[0]
        assert not found.sentence
    else:
        assert "warm_up" not in {row.remedy for row in verdict.remedies}
        assert found.sentence.startswith("Start-up takes ")
        gain = verdict.plan.gain
        assert gain is None or gain.value <= 1 - found.share + 0.01
        changes = [change for line in verdict.plan.lines for change in line.changes]
        assert not {*found.events} & {event for change in changes for event in change.events or ()}


@pytest.mark.parametrize("start_up", [40_000, 400_000])
def test_all_surfaces_say_the_same_of_start_up(start_up, tmp_path, capsys):
    path = started("capture", start_up).write(tmp_path / "trace.json")
    verdict = longpole.read_trace(path).verdict(whole=True)
    told = verdict.start_up.sentence or verdict.plan.lines[0].evidence
    page = tmp_path / "page.html"
    said = [printed(capsys, command, path) for command in ("summary", "whatif")]
    printed(capsys, "report", path, "-o", page)
    said.append(html.unescape(re.sub(r"<[^>]+>", " ", page.read_text(encoding="utf-8"))))
    assert all(told.rstrip(".") in " ".join(text.split()) for text in said)
    data = json.loads(printed(capsys, "summary", path, "--json"))["data"]
    answer = tools.call("summary", {"trace": str(path), "window": "all"}, [tmp_path])["data"]
    for found in (data["verdict"]["start_up"], answer["verdict"]["start_up"]):
        assert found == verdict.start_up.to_dict()
        assert found["is_answer"] == (start_up > iterations_take())


def printed(capsys, command, path, *options):
    assert program.run([command, str(path), *map(str, options), "--window=all"]) == 0
    return capsys.readouterr().out


def test_a_kernel_that_is_always_launched_slowly_is_not_loaded():
    builder = TraceBuilder()
    for number in range(10):
        at = 1_000 * number
        builder.launch("gemm", call=(at, at + 700), work=(at + 710, at + 900 + number))
    verdict = builder.read().verdict(whole=True)
    assert verdict.start_up is None


def test_start_up_on_another_thread_is_not_the_answer():
    builder = TraceBuilder()
    builder.call("cuModuleLoadData", (0, 9_000), thread=7)
    for number in range(20):
        at = 500 * number
        builder.launch("gemm", call=(at, at + 5), work=(at + 10, at + 495))
    verdict = builder.read().verdict(whole=True)
    assert verdict.start_up.share > 0.5
    assert not verdict.start_up.is_answer
    assert "warm_up" not in {line.remedy for line in verdict.plan.lines}
