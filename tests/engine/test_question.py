"""A question is the only key of an answer."""

from __future__ import annotations

import dataclasses

import pytest

from longpole import Question
from longpole.testing import TraceBuilder


def test_equal_questions_have_one_answer():
    assert Question(step="ProfilerStep#3") == Question(step="3") == Question(step=3)
    assert hash(Question(between=[1, 2])) == hash(Question(between=(1, 2)))
    assert Question(whole=True) != Question()


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ({"step": 1, "whole": True}, ValueError, "exclude each other"),
        ({"annotation": "a", "between": (0, 1)}, ValueError, "exclude each other"),
        ({"instance": 1}, ValueError, "instance needs annotation"),
        ({"annotation": "a", "instance": -1}, ValueError, "at least 0"),
        ({"annotation": "a", "instance": 1.5}, TypeError, "integer"),
        ({"between": (2, 1)}, ValueError, "ends before it starts"),
        ({"between": (0.5, 1)}, TypeError, "whole ns"),
        ({"step": "forward"}, ValueError, "a step is a number"),
        ({"as_recorded": True, "step_time_ns": 5}, ValueError, "exclude each other"),
    ],
)
def test_what_cannot_be_asked_is_refused(parts, error, message):
    with pytest.raises(error, match=message):
        Question(**parts)


def test_a_question_about_another_window_keeps_what_loads_data():
    asked = Question(annotation="forward", instance=2, step_name="it", data_load="next")
    other = asked.about(3)
    assert other == Question(step=3, step_name="it", data_load="next")
    changed = {
        field.name
        for field in dataclasses.fields(Question)
        if getattr(asked, field.name) != getattr(other, field.name)
    }
    assert changed == {"step", "annotation", "instance"}


def two_steps():
    builder = TraceBuilder()
    for step, work in enumerate((100, 300)):
        begin = 1000 * step
        builder.step(step, (begin, begin + 900))
        builder.launch("gemm", call=(begin + 10, begin + 20), work=(begin + 30, begin + 30 + work))
        builder.call("cudaDeviceSynchronize", (begin + 25, begin + 40 + work))
    return builder


def test_an_answer_is_computed_once_and_few_are_kept():
    trace = two_steps().read()
    first = trace.answer(Question(step=0))
    assert trace.answer(Question(step="0")) is first
    assert first.verdict is first.verdict
    others = [trace.answer(Question(between=(time, 2_000_000))) for time in range(4)]
    assert trace.answer(Question(step=0)) is not first
    assert trace.answer(Question(between=(3, 2_000_000))) is others[-1]


def test_an_answer_is_about_the_window_asked():
    trace = two_steps().read()
    answer = trace.answer(Question(step=1))
    assert (answer.steps, answer.window.step, answer.path.window) == (
        (1,),
        1,
        trace.critical_path(step=1).window,
    )
    assert answer.gains == trace.verdict(step=1).gains
    assert answer.limit == answer.verdict.limit
