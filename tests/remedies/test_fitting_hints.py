"""Hints fit the program, name no option in use, and no line is about the profiler's own work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from steps import steps

import longpole
from longpole.remedies.profiler_work import NAMES
from longpole.testing import TraceBuilder

if TYPE_CHECKING:
    from longpole import Trace
    from longpole.answer.values import Verdict

HERE = Path(__file__).parents[1] / "recordings"
SHARED = Path(__file__).parents[3] / "shared/data"
LARGEST = 3_000_000

# What only programs of torch can follow.
OF_TORCH = ("PYTORCH_", "expandable_segments", "`torch.", "non_blocking", "GradScaler")

# Arguments of torch's profiler, as advice names them, by their keys in a trace.
IN_USE = {"with_stack": "with_stack=True", "record_shapes": "record_shapes=True"}


def recordings() -> list[Path]:
    """Return the recorded traces that are here."""
    shared = [SHARED / "traces", SHARED / "gpu", SHARED / "cases/answers", SHARED / "cases/public"]
    files = [it for folder in (HERE, *shared) for it in sorted(folder.rglob("*")) if it.is_file()]
    suffixes = {".gz", ".sqlite", ".db", ".pb"}
    return [it for it in files if it.stat().st_size < LARGEST and it.suffix in suffixes]


@pytest.fixture(scope="module", params=recordings(), ids=lambda path: path.name)
def answered(request) -> tuple[Trace, Verdict]:
    """Return a recorded trace and its verdict."""
    try:
        trace = longpole.read_trace(request.param)
        return trace, trace.answer().verdict
    except longpole.LongpoleError:
        pytest.skip("no trace that can be read")


def advised(verdict: Verdict) -> str:
    """Return all that a verdict advises to change."""
    return " ".join(f"{row.advice}: {row.evidence}" for row in verdict.remedies)


def test_advice_of_a_recording_names_torch_only_for_programs_of_torch(answered):
    trace, verdict = answered
    has_operators = not trace.events.filter(pl.col("kind").is_in(["operator", "python"])).is_empty()
    is_shown = has_operators or trace.captured_kernels is not None
    if trace.core.profiler.startswith("torch") and is_shown:
        return
    assert not [word for word in OF_TORCH if word in advised(verdict)]


def test_no_recording_is_advised_an_option_that_it_was_made_with(answered):
    trace, verdict = answered
    told = f"{verdict} {advised(verdict)} {verdict.record}"
    used = [option for key, option in IN_USE.items() if trace.metadata.get(key) == 1]
    assert not [option for option in used if option in told]


def test_no_line_of_a_recording_is_mostly_the_work_of_the_profiler(answered):
    trace, verdict = answered
    own = trace.events.filter(pl.col("name").is_in(NAMES), kind="overhead")
    spans = [(row["start_ns"], row["start_ns"] + row["duration_ns"]) for row in own.to_dicts()]
    for line in verdict.plan.lines:
        changed = [change.time_ranges or () for change in line.changes]
        for _, start_ns, end_ns in (it for ranges in changed for it in ranges):
            within = sum(max(min(end, end_ns) - max(start, start_ns), 0) for start, end in spans)
            assert 2 * within <= end_ns - start_ns, line.told


@pytest.mark.parametrize("has_operators", [True, False])
@pytest.mark.parametrize("call", ["cudaMalloc", "cuMemMap"])
def test_the_memory_is_kept_as_the_program_can(has_operators, call):
    def fill(builder, begin):
        if has_operators:
            builder.operator("aten::relu", (begin + 500, begin + 560))
        builder.call(call, (begin + 5, begin + 6))
        builder.call("cudaMalloc", (begin + 10, begin + 200))
        builder.launch("relu", call=(begin + 510, begin + 520), work=(begin + 525, begin + 590))
        builder.call("cudaFree", (begin + 600, begin + 900))

    told = advised(steps(1_000, fill).read().verdict())
    assert "Keep the memory from step to step" in told
    assert ("empty_cache" in told) == has_operators
    assert ("expandable_segments" in told) == (has_operators and call == "cudaMalloc")
    assert ("a pool of memory that outlives the iteration" in told) == (not has_operators)


@given(st.sampled_from(["gap", "function", "launch", "tensor"]), st.booleans())
def test_what_only_recording_makes_long_is_no_line(what, is_recording):
    builder = TraceBuilder()
    builder.step(0, (0, 4_000))
    match what:
        case "gap":
            builder.operator("aten::add", (0, 30))
            builder.launch("add", call=(5, 15), work=(20, 30))
        case "function":
            builder.python("train.py(3): log", (10, 3_010))
            builder.operator("aten::empty", (10, 12))
        case "launch":
            builder.launch("first", call=(5, 3_005), work=(3_006, 3_010))
        case _:
            builder.operator("aten::empty", (5, 3_005))
    builder.operator("aten::relu", (3_050, 3_100))
    builder.launch("relu", call=(3_060, 3_070), work=(3_080, 3_900))
    builder.call("cudaDeviceSynchronize", (3_105, 3_905))
    name = "Activity Buffer Request" if is_recording else "Lazy Function Loading"
    builder.event(ph="X", cat="overhead", name=name, pid=-1, tid=0, ts=100, dur=2_800)
    verdict = builder.read().verdict(whole=True)
    found = {line.remedy for line in verdict.plan.lines} & {
        "warm_up",
        "recurring_call",
        "python_between_operators",
    }
    assert bool(found) != is_recording, verdict.actions


@given(st.booleans(), st.booleans())
def test_options_that_a_trace_was_recorded_with_are_not_advised(has_stack, has_shapes):
    def fill(builder, begin):
        builder.operator("aten::mm", (begin, begin + 900))
        builder.launch("gemm", call=(begin + 10, begin + 20), work=(begin + 100, begin + 800))
        builder.call("cudaDeviceSynchronize", (begin + 901, begin + 905))

    builder = steps(1_000, fill)
    builder.header(with_stack=int(has_stack), record_shapes=int(has_shapes))
    verdict = builder.read().verdict()
    told = f"{verdict} {verdict.record}"
    assert not (has_stack and "with_stack" in told)
    assert not (has_shapes and "record_shapes" in told)
