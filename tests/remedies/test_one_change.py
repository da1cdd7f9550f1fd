"""Lines of a plan: what somebody makes in one change is one, and what takes two changes is two."""

from __future__ import annotations

import pytest
from steps import remedy_of, steps

from longpole.testing import TraceBuilder

WAIT = "cudaStreamSynchronize"
DOWN = "Memcpy DtoH (Device -> Pageable)"


def plan_of(builder):
    return builder.read().verdict().plan


def logging(builder, begin):
    """Wait in a function that then works in Python, while the GPU is idle."""
    builder.operator("aten::mm", (begin, begin + 50))
    builder.launch("gemm", call=(begin + 10, begin + 20), work=(begin + 30, begin + 400))
    builder.operator("aten::relu", (begin + 55, begin + 75))
    builder.launch("relu", call=(begin + 60, begin + 70), work=(begin + 400, begin + 420))
    builder.python("train.py(7): log", (begin + 80, begin + 990))
    builder.python("<built-in function print>", (begin + 85, begin + 425))
    builder.call(WAIT, (begin + 90, begin + 421))


def test_a_wait_and_the_python_of_one_function_are_one_line():
    [line] = plan_of(steps(1_000, logging, n=5)).lines
    assert {line.remedy, *line.parts} == {"blocking_calls", "python_between_operators"}
    assert "wait" in line.evidence
    assert "in 1 gap" in line.evidence
    assert line.then.high > 0.5


def test_a_wait_and_python_elsewhere_are_two_lines():
    def fill(builder, begin):
        for at in (0, 500):
            builder.operator("aten::mm", (begin + at, begin + at + 50))
            work = (begin + at + 30, begin + at + 400)
            builder.launch("gemm", call=(begin + at + 10, begin + at + 20), work=work)
        builder.call(WAIT, (begin + 60, begin + 401))
        builder.operator("aten::add", (begin + 402, begin + 410))
        builder.python("train.py(7): log", (begin + 560, begin + 2_990))

    lines = plan_of(steps(3_000, fill, n=5)).lines
    assert [line.parts for line in lines] == [()] * len(lines)
    assert lines[0].remedy in {"python_between_operators", "recurring_call"}


def test_a_call_that_only_waits_and_a_read_are_two_places():
    def fill(builder, begin):
        for at in (0, 500):
            builder.operator("aten::mm", (begin + at, begin + at + 20))
            work = (begin + at + 20, begin + at + 400)
            builder.launch("gemm", call=(begin + at + 5, begin + at + 10), work=work)
        builder.call(WAIT, (begin + 30, begin + 401))
        builder.operator("aten::item", (begin + 525, begin + 920))
        builder.call(WAIT, (begin + 530, begin + 901))

    rows = steps(1_000, fill).read().verdict().remedies
    names = {row.name for row in rows if row.remedy == "blocking_calls"}
    assert names == {WAIT, "aten::item"}


@pytest.mark.parametrize(("pause_us", "n_reads"), [(10, 8), (300, None)])
def test_reads_with_work_of_the_program_between_them_are_no_run(pause_us, n_reads):
    def fill(builder, begin):
        for place in range(8):
            start = begin + place * (60 + pause_us)
            builder.operator("aten::item", (start, start + 50))
            work = (start + 8, start + 40)
            builder.launch(DOWN, call=(start + 2, start + 6), work=work, n_bytes=4)
            builder.call(WAIT, (start + 7, start + 45))

    found = remedy_of("small_copies", steps(8 * (60 + pause_us) + 100, fill))
    assert (found and found.evidence.split()[0]) == (n_reads and str(n_reads))


def test_a_gap_from_the_start_of_a_step_has_a_name():
    builder = TraceBuilder().step(1, (0, 1_000)).operator("aten::ones", (600, 700))
    builder.launch("fill", call=(610, 620), work=(630, 640))
    found = remedy_of("python_between_operators", builder)
    assert found is not None
    assert found.name == "between the start of the step and aten::ones"


def test_a_line_names_the_annotation_around_its_event():
    def fill(builder, begin):
        builder.annotation("encoder", (begin, begin + 700))
        builder.operator("aten::sort", (begin + 10, begin + 590))
        builder.operator("aten::mm", (begin + 610, begin + 690))
        builder.launch("gemm", call=(begin + 620, begin + 630), work=(begin + 640, begin + 690))

    [line, *_] = plan_of(steps(1_000, fill)).lines
    assert (line.remedy, line.name) == ("recurring_call", "aten::sort")
    assert line.told.endswith(", in encoder).")
