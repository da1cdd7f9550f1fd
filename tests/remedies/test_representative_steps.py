"""The steps that remedies are about: all of a few, and some of many that represent them."""

from __future__ import annotations

import json
import random

import pytest
from steps import steps

from longpole import read_trace
from longpole.answer.advice import options_in
from longpole.answer.blocks import basis_of
from longpole.answer.values import verdict_of, with_trace
from longpole.engine.question import Question
from longpole.remedies.facts import Facts
from longpole.remedies.gains import gains_of_sides
from longpole.testing import TraceBuilder

SAVE = "train.py(7): save"


def _fill(builder, begin):
    """Fill a step of 1 ms: a kernel that the host waits for, and a function that takes long."""
    builder.operator("aten::mm", (begin, begin + 50))
    builder.launch("gemm", call=(begin + 10, begin + 20), work=(begin + 30, begin + 400))
    builder.call("cudaStreamSynchronize", (begin + 60, begin + 405))
    builder.python(SAVE, (begin + 410, begin + 990))


def _saves(verdict):
    return {row.remedy: (row.gain.low, row.gain.high) for row in verdict.remedies}


def _of_all_steps(trace):
    """Return the verdict with facts from all steps."""
    window = Question().core_window()
    parts, core = trace.core.verdict(window, data_load=None, step_name=None, every_window=True)
    parts = with_trace(parts, gains_of_sides(core))
    return verdict_of(parts, Facts(core, parts, options_in(parts)))


@pytest.mark.parametrize("n_complete", [1, 2, 9, 10])
def test_of_few_steps_all_are_looked_at(n_complete):
    verdict = steps(1_000, _fill, n_complete + 1).read().verdict()
    assert len(verdict.steps) == n_complete
    assert verdict.remedy_steps == verdict.steps


@pytest.mark.parametrize("n", [12, 40, 101])
def test_of_many_equal_steps_ten_are_looked_at_among_them_the_shown_one(n):
    verdict = steps(1_000, _fill, n).read().verdict()
    assert len(verdict.steps) == n - 1
    first = verdict.remedy_steps[0]
    assert verdict.remedy_steps == tuple(range(first, first + 10))
    assert verdict.window.number in verdict.remedy_steps


def test_ten_of_many_equal_steps_have_the_gains_of_few():
    few, many = (_saves(steps(1_000, _fill, n).read().verdict()) for n in (11, 60))
    assert few.keys() == many.keys()
    assert "recurring_call" in few
    # The save of the last step of a trace lies after its last window.
    for name, gains in few.items():
        assert many[name] == pytest.approx(gains, abs=0.08), name


def test_three_large_steps_have_the_gains_of_all():
    trace = _queued(15, n=7, n_launches=5_700)
    few, every = trace.verdict(), _of_all_steps(trace)
    assert (len(few.remedy_steps), len(every.remedy_steps)) == (3, 6)
    assert few.window.number in few.remedy_steps
    assert few.gains == every.gains
    for name, gains in _saves(every).items():
        assert _saves(few)[name] == pytest.approx(gains, abs=0.04), name


def _queued(kernel_us, n=60, n_launches=40):
    """Build steps of launches that are 20 us apart, whose kernels run one after another."""
    builder, free_us = TraceBuilder(), 0
    length_us = 100 + 20 * n_launches
    for step in range(n):
        begin = length_us * step
        builder.step(step, (begin, begin + length_us))
        for number in range(n_launches):
            at = begin + 20 * number
            builder.operator("aten::relu", (at, at + 12))
            start = max(free_us, at + 10)
            free_us = start + kernel_us
            builder.launch("relu", call=(at + 4, at + 8), work=(start, free_us))
        builder.python(SAVE, (begin + length_us - 90, begin + length_us - 20))
    return builder.read()


@pytest.mark.parametrize("kernel_us", [5, 15, 22, 30])
def test_ten_of_many_steps_have_the_gains_of_all(kernel_us):
    trace = _queued(kernel_us)
    few, every = trace.verdict(), _of_all_steps(trace)
    assert (len(few.remedy_steps), len(every.remedy_steps)) == (10, 59)
    assert few.gains == every.gains
    for name, gains in _saves(every).items():
        assert _saves(few)[name] == pytest.approx(gains, abs=0.04), name


def test_the_order_of_events_does_not_choose_other_steps():
    builder = steps(1_000, _varied, 50)
    events = json.loads(builder.to_bytes())["traceEvents"]
    random.Random(3).shuffle(events)  # noqa: S311
    shuffled = read_trace(json.dumps({"schemaVersion": 1, "traceEvents": events}).encode())
    one, other = builder.read().verdict(), shuffled.verdict()
    assert one.remedy_steps == other.remedy_steps
    assert len(one.remedy_steps) == 10
    assert _saves(one) == _saves(other)


def _varied(builder, begin):
    """Fill a step whose save takes a time of its own, within 5 %."""
    _fill(builder, begin)
    builder.operator("aten::add", (begin + 990, begin + 991 + begin // 1_000 % 7))


def test_what_happens_once_and_takes_long_is_found_among_many_steps():
    def fill(builder, begin):
        at = begin if begin < 3_000 else begin + 90_000
        if begin == 3_000:
            builder.call("cuModuleLoadData", (begin, begin + 90_000))
        _fill(builder, at)

    builder = steps(1, lambda *_: None, 0)
    for number in range(40):
        begin = 1_000 * number
        start = begin if begin <= 3_000 else begin + 90_000
        end = begin + 1_000 if begin < 3_000 else begin + 91_000
        builder.step(number, (start, end))
        fill(builder, begin)
    verdict = builder.read().verdict()
    assert verdict.remedy_steps == verdict.steps
    assert "warm_up" in {row.remedy for row in verdict.remedies if row.named}


def test_the_answer_says_which_steps_it_looked_at():
    few, many = (steps(1_000, _fill, n).read().verdict() for n in (8, 60))
    assert basis_of(few) == []
    first, last = many.remedy_steps[0], many.remedy_steps[-1]
    assert basis_of(many) == [
        f"Remedies and their gains are those of 10 of the 59 steps: {first} to {last}."
    ]
