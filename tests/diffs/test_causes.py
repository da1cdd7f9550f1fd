"""Causes that a comparison names: what hidden work, other ranks and other options do not show."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import longpole
from longpole.testing import TraceBuilder
from oracles.rewriting import edited
from oracles.simulator import Machine, Run
from oracles.simulator.catalogue import item_to_host
from oracles.simulator.program import Busy, Frame
from oracles.simulator.programs import COMPUTE, training
from oracles.simulator.ranks import write_ranks
from oracles.simulator.ranks_programs import random_ranks
from real_traces import SHARED

CASES = SHARED / "cases"
PROGRAMS = SHARED / "gpu" / "programs"
needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason="the cases of ../shared are not here")


def _steps(work_us, host_us):
    """Return steps that wait for a kernel, and then work on the host."""
    builder, begin = TraceBuilder(), 0
    for step in range(8):
        end = begin + work_us + host_us + 20
        builder.step(step, (begin, end))
        builder.launch("gemm", call=(begin, begin + 10), work=(begin + 12, begin + 12 + work_us))
        builder.call("cudaDeviceSynchronize", (begin + 11, begin + 14 + work_us))
        begin = end
    return builder.read()


def test_a_gain_and_a_loss_that_meet_are_both_named(said):
    found = longpole.diff(_steps(440, 50), _steps(220, 270))
    assert found.verdict == "neutral"
    said.within(found.sentence)
    assert "216 µs longer" in found.sentence


def _two_ranks(late_us):
    """Return two ranks; the first works on the host before a collective that both wait in."""
    sides = []
    for number, own_us in enumerate((100 + late_us, 100)):
        builder = TraceBuilder().header(distributedInfo={"rank": number, "world_size": 2})
        period = 400 + late_us
        for step in range(6):
            begin = period * step
            builder.step(step, (begin, begin + period - 5))
            builder.python("dataloader.py(5): __next__", (begin, begin + own_us - 10))
            call = (begin + own_us, begin + own_us + 5)
            work = (begin + own_us + 6, begin + late_us + 300)
            builder.launch("ncclDevKernel_AllReduce_Sum_f32", call=call, work=work)
            builder.call("cudaDeviceSynchronize", (call[1] + 1, work[1] + 3))
        sides.append(builder.read())
    return sides


def test_the_rank_that_the_others_wait_for_is_described():
    found = longpole.diff(_two_ranks(0), _two_ranks(900))
    assert (found.verdict, found.new.rank) == ("regression", 0)
    assert "data loading: " in found.sentence
    assert "AllReduce" not in found.sentence
    back = longpole.diff(_two_ranks(900), _two_ranks(0))
    waits = {"communication_overlap", "stream_waits", "late_rank"}
    assert not waits & {row.remedy for row in back.predictions}


@pytest.mark.parametrize("seed", [2, 11])
def test_what_made_the_late_rank_late_is_the_cause(tmp_path, seed):
    run = random_ranks(seed, n_ranks=4, n_steps=7, n_stragglers=1)
    (straggler,) = run.stragglers
    for name, job in (("base", run.build(())), ("new", run.job)):
        (tmp_path / name).mkdir()
        write_ranks(job, job.times_ns(), run.clocks, tmp_path / name)
    sides = [longpole.read_traces(tmp_path / name) for name in ("base", "new")]
    for pair, waits in ((sides, "now makes"), (sides[::-1], "no longer makes")):
        found = longpole.diff(*pair)
        assert found.late_rank.rank == found.new.rank == straggler.rank
        assert found.late_rank.cause == straggler.cause
        assert f"rank {straggler.rank} {waits} the others wait ({straggler.cause}" in found.sentence
        assert 0 <= found.late_rank.effect_ns / (found.new.mean_ns - found.base.mean_ns) <= 1


@needs_cases
@pytest.mark.parametrize("case", ["no_shapes", "stacks_new"])
def test_other_options_of_the_recording_are_no_remedy_and_no_cause(case):
    sides = [CASES / "diff" / case / f"{side}.json.gz" for side in ("base", "new")]
    for pair in (sides, sides[::-1]):
        found = longpole.diff(*pair)
        assert found.verdict in {"neutral", "inconclusive"}
        assert found.predictions == ()
        assert "What changed most" not in found.sentence


@needs_cases
@pytest.mark.parametrize("case", ["gap_hidden", "gap_hidden_by_communication", "kernels_slower"])
def test_hidden_work_has_no_effect(case):
    sides = [CASES / "diff" / case / f"{side}.json.gz" for side in ("base", "new")]
    for pair in (sides, sides[::-1]):
        found = longpole.diff(*pair)
        least_ns = 0.05 * found.base.recorded_mean_ns
        assert all(abs(it.effect_ns or 0.0) <= least_ns for it in found.changes)


@needs_cases
def test_a_remedy_and_its_reverse_are_one_program(said):
    sides = [PROGRAMS / f"attention.{side}.json.gz" for side in ("before", "after")]
    applied, undone = longpole.diff(*sides), longpole.diff(*sides[::-1])
    assert (applied.verdict, undone.verdict) == ("improvement", "regression")
    assert undone.undone == ("fused_attention",)
    said.within(undone.sentence)


@needs_cases
def test_other_options_and_a_rewrite_are_one_program_in_both_directions():
    sides = [PROGRAMS / f"attention.{side}.json.gz" for side in ("stack", "after")]
    applied, undone = longpole.diff(*sides), longpole.diff(*sides[::-1])
    assert applied.is_one_program
    assert undone.is_one_program
    assert (applied.signs, undone.undone) == (("fused_attention",), ("fused_attention",))


@needs_cases
@pytest.mark.parametrize("program", ["loader", "download", "transposes"])
def test_stacks_on_one_side_alone_are_no_change(program):
    sides = [PROGRAMS / f"{program}.{side}.json.gz" for side in ("before", "stack")]
    for pair in (sides, sides[::-1]):
        found = longpole.diff(*pair)
        assert found.is_one_program
        assert found.verdict in {"neutral", "inconclusive"}
        assert not any(change.relation == "reshaped" for change in found.changes)


def test_a_gap_is_named_though_one_side_records_python_functions(tmp_path):
    def later(item):
        is_layer = isinstance(item, Frame) and item.name.startswith("nn.Module: ")
        return [Busy(400_000), item] if is_layer else [item]

    program = training(3, steps=6, world_size=1)
    Run(program, Machine(seed=1)).write(tmp_path / "base.json")
    Run(edited(program, later), Machine(seed=1), python_frames=True).write(tmp_path / "new.json")
    sides = (tmp_path / "base.json", tmp_path / "new.json")
    for pair in (sides, sides[::-1]):
        assert "What changed most: host time outside operators" in longpole.diff(*pair).sentence


@needs_cases
def test_equal_kernels_are_one_program_when_the_host_runs_ahead():
    sides = [CASES / "answers" / name / "x_kernel_trace.csv" for name in ("sync_each", "sync_once")]
    for pair in (sides, sides[::-1]):
        assert longpole.diff(*pair).is_one_program


@needs_cases
def test_all_repetitions_are_compared_where_nothing_marks_steps():
    sides = [CASES / "answers" / name / "x_kernel_trace.csv" for name in ("sync_each", "sync_once")]
    for pair, verdict in ((sides, "improvement"), (sides[::-1], "regression")):
        found = longpole.diff(*pair)
        assert (found.base.unit, found.new.unit) == ("repetition", "repetition")
        assert min(found.base.n_steps, found.new.n_steps) > 50
        assert found.verdict == verdict
        assert "the mean repetition goes from" in found.sentence


def _repeated(names, *, has_steps=False):
    """Return a trace in which the same kernels run twelve times."""
    builder, begin = TraceBuilder(), 0
    for number in range(12):
        start = begin
        for name in names:
            builder.launch(name, call=(begin, begin + 5), work=(begin + 6, begin + 50))
            builder.call("cudaDeviceSynchronize", (begin + 10, begin + 55))
            begin += 60
        if has_steps:
            builder.step(number, (start, begin - 1))
    return builder.read()


def test_repetitions_of_other_parts_of_a_program_have_no_verdict():
    short, long = _repeated(["gemm", "relu"]), _repeated(["gemm", "relu", "gemm", "relu", "sum"])
    steps = _repeated(["gemm", "relu"], has_steps=True)
    assert longpole.diff(short, _repeated(["gemm", "relu"])).verdict == "neutral"
    for pair in ((short, long), (long, short), (short, steps), (steps, short)):
        found = longpole.diff(*pair)
        assert (found.verdict, found.interval) == ("inconclusive", None)


def _compared(tmp_path, base, new):
    """Compare two simulated programs, whose recording costs nothing."""
    for name, program in (("base", base), ("new", new)):
        Run(program, Machine(seed=1)).write(tmp_path / f"{name}.json")
    sides = (tmp_path / "base.json", tmp_path / "new.json")
    return [longpole.diff(*pair, as_recorded=True) for pair in (sides, sides[::-1])]


def _read_back(item):
    """Read a value back at the end of each layer of the forward pass."""
    is_layer = isinstance(item, Frame) and item.name.startswith("nn.Module: ")
    return [item, item_to_host(COMPUTE)] if is_layer else [item]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_wait_that_was_added_is_named_with_at_most_the_change(tmp_path, seed):
    program = training(seed, steps=6, world_size=1, kernel_scale=2)
    for found in _compared(tmp_path, program, edited(program, _read_back)):
        change_ns = found.new.mean_ns - found.base.mean_ns
        waits = [it for it in found.changes if it.kind == "wait"]
        assert waits
        effects = [(it.effect_ns or 0.0) / change_ns for it in waits]
        assert all(0 <= effect <= 1 for effect in effects)
        assert max(effects) >= 0.7
        assert "calls that wait for the GPU" in found.sentence


def _renamed(item):
    """Return annotations and functions with other names, and functions with other lines."""
    if not isinstance(item, Frame):
        return [item]
    if item.name.startswith("Optimizer."):
        return [replace(item, name=item.name.replace("Optimizer", "own"))]
    name = re.sub(r"\((\d+)\)", r"(1\1)", item.name)
    return [replace(item, name=name.replace(": main", ": run").replace(": backward", ": run_back"))]


@pytest.mark.parametrize("has_python", [False, True])
def test_other_names_of_annotations_and_lines_change_nothing(tmp_path, has_python):
    program = training(3, steps=6, world_size=1)
    for name, it in (("base", program), ("new", edited(program, _renamed))):
        Run(it, Machine(seed=1), python_frames=has_python).write(tmp_path / f"{name}.json")
    sides = (tmp_path / "base.json", tmp_path / "new.json")
    for pair in (sides, sides[::-1]):
        found = longpole.diff(*pair, as_recorded=True)
        assert "What changed most" not in found.sentence
        assert not any(it.change_ns for it in found.changes if it.stands_out)


def test_calls_of_two_vendors_correspond_by_their_role(tmp_path):
    program = training(2, steps=6, world_size=1)
    Run(program, Machine(seed=1)).write(tmp_path / "base.json")
    text = (tmp_path / "base.json").read_text().replace('"cudaLaunchKernel"', '"hipLaunchKernel"')
    (tmp_path / "new.json").write_text(text)
    found = longpole.diff(tmp_path / "base.json", tmp_path / "new.json", as_recorded=True)
    (launches,) = [it for it in found.changes if "cudaLaunchKernel" in it.base_names]
    assert launches.new_names == ("hipLaunchKernel",)
    assert launches.change_ns == 0


@needs_cases
@pytest.mark.parametrize(
    ("case", "cause"),
    [
        ("flash", "attention (flash)"),
        ("foreach", "binary_op of tensor lists"),
        ("serial_all_reduce", "overlap of communication with kernels was "),
        ("outlier_step", "Step 5 of the "),
    ],
)
def test_the_cause_is_what_was_changed(case, cause):
    sides = [CASES / "diff" / case / f"{side}.json.gz" for side in ("base", "new")]
    for pair in (sides, sides[::-1]):
        found = longpole.diff(*pair)
        assert cause in found.sentence
        change_ns = abs(found.new.mean_ns - found.base.mean_ns)
        of_order = [it for it in found.changes if it.kind == "exposed"]
        assert all(abs(it.effect_ns or 0.0) <= change_ns for it in of_order)


@needs_cases
def test_fewer_launches_are_told_with_what_replaced_them():
    sides = [CASES / "diff" / "flash" / f"{side}.json.gz" for side in ("base", "new")]
    assert ", with 12 fewer launches" in longpole.diff(*sides).sentence
    assert ", with 12 more launches" in longpole.diff(*sides[::-1]).sentence
