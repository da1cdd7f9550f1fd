"""No sentence tells a part that is longer than its whole, or an interval that says nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import longpole
from longpole.answer.actions import between
from longpole.remedies.catalogue import remedy_of
from longpole.testing import TraceBuilder

if TYPE_CHECKING:
    from longpole.answer.values import Verdict

HERE = Path(__file__).parents[1] / "recordings"
SHARED = Path(__file__).parents[3] / "shared/data"
LARGEST = 3_000_000

# What the data may hold, and what no sentence may say.
WIDEST = 40
NS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
TIME = re.compile(r"(\d[\d,]*(?:\.\d+)?) (ns|µs|ms|s)\b")
RANGE = re.compile(r"(\d+) (?:to|%, at most) (\d+) %")


def recordings() -> list[Path]:
    """Return the recorded traces that are here."""
    shared = [SHARED / "traces", SHARED / "cases/answers", SHARED / "cases/public"]
    files = [it for folder in (HERE, *shared) for it in sorted(folder.rglob("*")) if it.is_file()]
    return [it for it in files if it.stat().st_size < LARGEST and it.suffix in {".gz", ".sqlite"}]


def times_ns(text: str) -> list[float]:
    """Return the times in a text."""
    return [float(it[1].replace(",", "")) * NS[it[2]] for it in TIME.finditer(text)]


def assert_sensible(verdict: Verdict) -> None:
    """Assert that what the lines tell is within the window, and narrow enough to be told."""
    [told_ns, *_] = times_ns(verdict.sentence.partition(" takes ")[2]) or [float("inf")]
    for line in verdict.plan.lines:
        # A length is rounded to three digits.
        assert max(times_ns(line.evidence), default=0) <= 1.005 * told_ns, line.told
    told = (verdict.sentence, *verdict.actions, verdict.plan.sentence, *(verdict.limited_by or ()))
    for text in told:
        assert "at most 100 %" not in text
        assert all(int(high) - int(low) <= WIDEST for low, high in RANGE.findall(text)), text


@pytest.mark.parametrize("path", recordings(), ids=lambda path: path.name)
def test_no_sentence_of_a_recording_tells_more_than_the_whole(path):
    try:
        verdict = longpole.read_trace(path).answer().verdict
    except longpole.LongpoleError:
        pytest.skip("no trace that can be read")
    assert_sensible(verdict)


@given(st.lists(st.integers(1_000, 60_000), min_size=2, max_size=4))
def test_waits_are_within_the_step_that_is_told(waits):
    builder, at = TraceBuilder(), 0
    for number, wait in enumerate(waits):
        length = wait + 3_000
        builder.step(number, (at, at + length))
        name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        builder.annotation(name, (at + 10, at + 10 + wait))
        builder.launch(
            "gemm", call=(at + wait + 20, at + wait + 30), work=(at + wait + 40, at + wait + 2_000)
        )
        builder.call("cudaDeviceSynchronize", (at + wait + 40, at + wait + 2_010))
        at += length
    verdict = builder.read().verdict()
    assert "loader_prefetch" in {line.remedy for line in verdict.plan.lines}
    assert_sensible(verdict)


@given(st.floats(0, 1), st.floats(0, 1))
def test_an_interval_that_is_told_is_at_most_forty_points_wide(one, other):
    low, high = sorted((one, other))
    told = between(low, high)
    assert "at most" not in told
    for least, most in RANGE.findall(told):
        assert int(most) - int(least) <= WIDEST


@pytest.mark.parametrize("path", recordings(), ids=lambda path: path.name)
def test_no_recording_has_a_refuted_remedy_first(path):
    try:
        lines = longpole.read_trace(path).answer().verdict.plan.lines
    except longpole.LongpoleError:
        pytest.skip("no trace that can be read")
    assert not lines or not remedy_of(str(lines[0].remedy)).is_refuted
