"""Compilation in the steps: the trace, the gain and the sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from steps import remedy_of, steps

from longpole.engine.arguments import ARGUMENTS
from longpole.remedies.gains import beyond

if TYPE_CHECKING:
    from longpole.testing import TraceBuilder

AGAIN = "Find out why functions are compiled again (`TORCH_LOGS=recompiles`), and compile them once"


def compiling(builder: TraceBuilder, begin: int) -> None:
    """Fill a step with 6 ms of compilation, then a kernel of 2 ms."""
    builder.operator("entire_frame_compile", (begin + 10, begin + 6_010))
    builder.operator("_compile.compile_inner (dynamo_timed)", (begin + 20, begin + 6_000))
    builder.operator("Torch-Compiled Region: 0/3", (begin + 6_020, begin + 6_060))
    work = (begin + 6_040, begin + 8_040)
    builder.launch("gemm", call=(begin + 6_025, begin + 6_035), work=work)
    builder.call("cudaDeviceSynchronize", (begin + 6_070, begin + 8_050))


def steady(builder: TraceBuilder, begin: int) -> None:
    """Fill a step with compiled code that is there already."""
    builder.operator("TorchDynamo Cache Lookup", (begin + 10, begin + 15))
    builder.operator("Torch-Compiled Region: 0/3", (begin + 20, begin + 60))
    builder.launch("gemm", call=(begin + 25, begin + 35), work=(begin + 40, begin + 2_040))
    builder.call("cudaDeviceSynchronize", (begin + 70, begin + 2_050))


def test_compilation_in_every_step_gains_its_time(said):
    found = remedy_of("compile_overhead", steps(8_100, compiling))
    assert abs(found.gain.low - 6_000 / 8_100) < 0.01, found
    assert found.advice == AGAIN
    said(found.evidence)


@pytest.mark.parametrize(("sizes", "is_named"), [([8, 9, 8, 12], True), ([8, 8, 8, 8], False)])
def test_shapes_are_named_if_they_differ_between_the_steps(sizes, is_named):
    left = iter(sizes)

    def fill(builder: TraceBuilder, begin: int) -> None:
        compiling(builder, begin)
        dims = f"[[{next(left)}, 64], [64, 64]]"
        builder.operator("aten::mm", (begin + 6_021, begin + 6_024), **{"Input Dims": dims})

    trace = steps(8_100, fill).read(args=ARGUMENTS)
    [found] = (row for row in trace.verdict().remedies if row.remedy == "compile_overhead")
    assert ("(`torch.compile(..., dynamic=True)`), which differ" in found.advice) == is_named
    assert (found.advice == AGAIN) != is_named


@pytest.mark.parametrize(
    ("step", "begins"), [(0, AGAIN), (1, AGAIN), (3, "If every step compiles, find out")]
)
def test_other_steps_show_whether_a_chosen_one_compiles_again(step, begins):
    verdict = steps(8_100, compiling).read().verdict(step=step)
    [found] = (row for row in verdict.remedies if row.remedy == "compile_overhead")
    assert found.advice.startswith(begins)


def test_what_dynamo_does_around_a_compilation_may_go_too():
    def fill(builder: TraceBuilder, begin: int) -> None:
        builder.operator("dynamo", (begin + 2, begin + 1_010))
        builder.operator("_compile.compile_inner (dynamo_timed)", (begin + 210, begin + 1_000))
        builder.operator("dynamo", (begin + 1_011, begin + 1_110))
        work = (begin + 1_130, begin + 2_130)
        builder.launch("gemm", call=(begin + 1_115, begin + 1_125), work=work)
        builder.call("cudaDeviceSynchronize", (begin + 1_130, begin + 2_135))

    found = remedy_of("compile_overhead", steps(2_150, fill))
    assert abs(found.gain.low - 790 / 2_150) < 0.01, found
    # not with the one that compiles nothing
    assert abs(found.gain.high - beyond(1_008 / 2_150)) < 0.01, found
    assert remedy_of("recurring_call", steps(2_150, fill)) is None


def test_compilation_in_a_single_step_belongs_to_the_start(said):
    builder = steps(8_100, compiling, n=1)
    assert remedy_of("compile_overhead", builder) is None
    found = remedy_of("warm_up", builder)
    assert found.advice.startswith("Record a later step")
    said(found.evidence)


def test_code_that_is_compiled_already_is_left_alone():
    assert remedy_of("compile_overhead", steps(2_100, steady)) is None
