"""What to analyse or to record, where a trace does not show what its time is spent on."""

from __future__ import annotations

from dataclasses import replace

import pytest

import longpole
from longpole.answer.blocks import none_of
from longpole.testing import TraceBuilder


def measured(name: str = "measure") -> TraceBuilder:
    """Build a program that sets up for a second, warms up slowly, and measures."""
    builder = TraceBuilder().operator("setup", (0, 1_000_000))
    for begin, length, annotation in ((1_000_000, 400_000, "warm up"), (1_400_000, 300, name)):
        builder.annotation(annotation, (begin, begin + length))
        builder.operator("aten::mm", (begin + 1, begin + 90))
        builder.launch("gemm", call=(begin + 10, begin + 20), work=(begin + 30, begin + 130))
    return builder


def test_the_annotation_with_the_busiest_gpu_is_named(said):
    told = " ".join(measured().read().verdict().actions)
    said.within(told)
    assert "warm up has" not in told


def test_a_window_of_an_annotation_is_called_by_its_name():
    trace = measured("a\x1b[31m").read()
    window = longpole.choose_window(trace, annotation="a\x1b[31m")
    assert window.title == "annotation a\\x1b[31m (instance 0)"
    assert not any("--window" in line for line in trace.verdict(annotation="warm up").actions)


def test_an_annotation_that_encloses_another_of_its_name_says_so():
    builder = measured().annotation("measure", (1_400_005, 1_400_200))
    sentence = "The annotation encloses 1 other of its name; choose one with `--window NAME#N`."
    verdicts = [builder.read().verdict(annotation="measure", instance=i) for i in (0, 1)]
    assert [sentence in verdict.actions for verdict in verdicts] == [True, False]


def test_calls_of_the_only_window_are_not_counted_a_window(said):
    builder = TraceBuilder().annotation("fit", (0, 900))
    builder.launch("first", call=(1, 3), work=(4, 8))
    for begin, name in zip(range(10, 760, 150), ("cudaMalloc", "cudaFree") * 3, strict=False):
        builder.call(name, (begin, begin + 149))
    builder.launch("gemm", call=(810, 815), work=(816, 890))
    remedies = builder.read().verdict(annotation="fit").remedies
    [found] = [it for it in remedies if it.remedy == "allocation"]
    said(found.evidence)


def operators(*, stacks: bool) -> TraceBuilder:
    """Build steps of operators that take 200 us each, with short kernels that no graph repeats."""
    builder = TraceBuilder()
    for step in range(4):
        begin = 2_000 * step
        builder.step(step, (begin, begin + 2_000))
        if stacks:
            builder.python("train.py(3): forward", (begin, begin + 1_999))
        for number in range(10):
            start = begin + 200 * number
            builder.operator(f"my::op{number}", (start, start + 195))
            name, call = f"kernel{step}", (start + 180, start + 190)
            builder.launch(name, call=call, work=(start + 192, start + 196))
    return builder


def test_stacks_are_asked_for_only_where_they_are_missing(said):
    sentence = "Which lines of Python call the operators is not recorded"
    told = [" ".join(operators(stacks=stacks).read().verdict().actions) for stacks in (False, True)]
    assert [sentence in actions for actions in told] == [True, False]
    said.within(told[0])


@pytest.mark.parametrize("inputs", [{}, {"Input Dims": "[[8, 8]]", "Input type": '["float"]'}])
def test_shapes_are_asked_for_where_kernels_limit_and_no_operator_has_any(inputs):
    builder = TraceBuilder()
    for begin in range(0, 4_000, 1_000):
        builder.step(begin // 1_000, (begin, begin + 1_000))
        builder.operator("aten::silu", (begin + 1, begin + 30), **inputs)
        builder.launch("silu", call=(begin + 10, begin + 20), work=(begin + 25, begin + 995))
        builder.call("cudaDeviceSynchronize", (begin + 40, begin + 997))
    verdict = builder.read().verdict()
    told = " ".join(verdict.actions)
    assert ("not recorded (record_shapes=True)" in told) == (not inputs), told
    [note] = none_of(replace(verdict, remedies=()))
    assert note.startswith("By what is recorded, no" if not inputs else "No remedy that longpole")
