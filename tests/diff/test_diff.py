"""What `longpole diff` says, held against simulated runs of which the truth is known."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import longpole
from longpole.analyses.diff.judgement import (
    Judgement,
    is_beyond_noise,
    judge_cost,
    judge_runs,
    judge_step,
    judge_steps,
    moderated_t,
)
from longpole.analyses.diff.matching import shared_out
from longpole.analyses.diff.sentences import sentence
from longpole.analyses.diff.sides import side_of
from longpole.analyses.diff.values import PathChange
from longpole.cli import program
from longpole.testing import TraceBuilder
from oracles.rewriting import (
    a_training,
    launch_names,
    other_device,
    rewritten,
    run_of,
    truly_matched,
    with_layers,
)
from oracles.simulator import Machine, Run, Scale, simulate
from oracles.simulator.programs import training
from real_traces import SHARED

BEFORE_AFTER = SHARED / "traces" / "before_after"


@pytest.fixture(scope="module")
def a_program():
    return training(3, steps=8, layers=5, world_size=1)


@pytest.fixture
def read(tmp_path):
    def read(run, name="trace.json"):
        run.write(tmp_path / name)
        return longpole.read_trace(tmp_path / name, args=["Input Dims"])

    return read


@pytest.fixture
def base(read, a_program):
    return read(run_of(a_program, 1), "base.json")


def slower(a_program, name, seed, by):
    machine = Machine(seed=seed, spread=0.02)
    return Run(a_program, machine, [Scale("kernel", f"^{re.escape(name)}$", by=by)])


def test_a_run_does_not_differ_from_itself(base):
    found = longpole.diff(base, base)
    assert (found.verdict, found.change, found.n_differences) == ("neutral", 0.0, 0)
    assert not any(change.stands_out or change.change_ns for change in found.changes)
    assert sum(row.change_ns for row in found.path) == 0


def test_two_runs_of_one_program_are_neutral(base, read, a_program):
    found = longpole.diff(base, read(run_of(a_program, 2), "again.json"))
    assert found.verdict == "neutral"
    assert found.interval[0] < 0 < found.interval[1]
    assert not any(change.stands_out for change in found.changes)
    assert any("One run of each side does not show" in reason for reason in found.reasons)


@pytest.mark.parametrize("nth", [0, 3])
def test_a_slower_kernel_is_named_first(base, read, a_program, nth):
    names = sorted({name for name in launch_names(a_program) if not name.startswith("Mem")})
    found = longpole.diff(base, read(slower(a_program, names[nth], 9, 1.05), "slow.json"))
    first = found.changes[0]
    assert (first.kind, first.base_names, first.stands_out) == ("kernel", (names[nth],), True)
    assert first.change == pytest.approx(0.05, abs=0.02)


def test_a_much_slower_kernel_is_a_regression_by_what_it_does_to_the_step(base, read, a_program):
    name = max(launch_names(a_program), key=launch_names(a_program).count)
    found = longpole.diff(base, read(slower(a_program, name, 9, 8.0), "slow.json"))
    assert found.verdict == "regression"
    assert found.interval[0] > 0
    first = found.changes[0]
    assert first.base_names == (name,)
    # What the graph says of the one change is what happened, but for noise.
    happened_ns = found.new.mean_ns - found.base.mean_ns
    assert first.effect_ns == pytest.approx(happened_ns, rel=0.1)


def test_the_account_of_the_path_sums_to_the_change_of_the_step(base, read, a_program):
    other = read(slower(a_program, launch_names(a_program)[4], 9, 3.0), "slow.json")
    found = longpole.diff(base, other)
    difference_ns = found.new.mean_ns - found.base.mean_ns
    assert sum(row.change_ns for row in found.path) == pytest.approx(difference_ns, abs=1)
    on_path_ns = sum(change.new_path_ns for change in found.changes)
    assert 0.7 * found.new.mean_ns < on_path_ns <= found.new.mean_ns * 1.0001


@pytest.mark.parametrize(
    ("rename", "fuse"), [(0.4, 0.0), (0.0, 0.4), (0.4, 0.4), (0.0, 1.0)], ids=str
)
def test_renamed_and_fused_launches_find_their_counterparts(base, read, a_program, rename, fuse):
    changed = rewritten(a_program, 7, rename=rename, fuse=fuse)
    new = read(run_of(changed.program, 11), "new.json")
    n_right, n_all = truly_matched(side_of(base), side_of(new), changed.origins)
    assert n_right >= 0.98 * n_all
    relations = {change.relation for change in longpole.diff(base, new).changes}
    assert {"fused"} & relations == ({"fused"} if fuse else set())
    assert ("renamed" in relations) == bool(rename)


def test_another_device_is_the_same_program_with_other_kernels(base, read, a_program):
    changed = other_device(a_program)
    new = read(run_of(changed.program, 11), "new.json")
    n_right, n_all = truly_matched(side_of(base), side_of(new), changed.origins)
    assert n_right >= 0.98 * n_all
    found = longpole.diff(base, new)
    assert found.is_related
    renamed = [change for change in found.changes if change.kind == "kernel"]
    assert {change.relation for change in renamed} == {"renamed"}


def on_machine(path, **fields):
    """Return a copy of a trace that was recorded elsewhere."""
    trace = json.loads(path.read_text())
    for name, value in fields.items():
        trace[name] = {**trace[name], **value} if isinstance(value, dict) else value
    other = path.with_name(f"elsewhere_{path.name}")
    other.write_text(json.dumps(trace))
    return other


def test_other_devices_are_said_before_any_cause(read, a_program, tmp_path, capsys):
    name = min(name for name in launch_names(a_program) if not name.startswith("Mem"))
    read(run_of(a_program, 1), "base.json")
    read(slower(a_program, name, 9, 1.5), "new.json")
    devices = [[{"id": 0, "name": device}] for device in ("NVIDIA A100", "Tesla V100")]
    sides = [
        on_machine(
            tmp_path / file,
            deviceProperties=properties,
            distributedInfo={"world_size": size},
            cuda_runtime_version=cuda,
        )
        for file, properties, size, cuda in zip(
            ("base.json", "new.json"), devices, (8, 2), (11080, 12040), strict=True
        )
    ]
    found = longpole.diff(*map(longpole.read_trace, sides))
    where = "across devices and world sizes (NVIDIA A100, 8 ranks, against Tesla V100, 2 ranks): "
    assert found.sentence.startswith(f"{found.verdict.capitalize()} {where}")
    assert "cannot be told from what the program did; the largest change" in found.sentence
    assert "What changed most: " not in found.sentence
    assert found.reasons[0].startswith("The sides have different devices and world sizes")
    differing = {setup.what: (setup.base, setup.new) for setup in found.setups if setup.differs}
    assert differing == {
        "device": ("NVIDIA A100", "Tesla V100"),
        "world size": ("8", "2"),
        "CUDA runtime": ("11.8", "12.4"),
    }
    for form in ("text", "md", "html", "json"):
        program.run(["diff", *map(str, sides), "--format", form])
        said = " ".join(capsys.readouterr().out.split())
        assert where.split(" (", maxsplit=1)[0] in said
        assert "CUDA runtime" in said


def test_what_one_side_does_not_record_is_no_difference(base, tmp_path):
    other = longpole.read_trace(on_machine(tmp_path / "base.json", deviceProperties=[]))
    found = longpole.diff(base, other)
    assert not any(setup.differs for setup in found.setups)
    assert found.sentence.startswith("Neutral: ")


def test_other_shapes_are_told(read, tmp_path):
    programs = [training(3, steps=5, layers=4, world_size=1) for _ in range(2)]
    runs = [run_of(each, seed, shapes=True) for seed, each in enumerate(programs)]
    traces = [read(run, f"{n}.json") for n, run in enumerate(runs)]
    assert {change.relation for change in longpole.diff(*traces).changes} == {"same"}
    path = tmp_path / "1.json"
    path.write_text(path.read_text().replace("[64, 512]", "[96, 512]"))
    found = longpole.diff(traces[0], longpole.read_trace(path, args=["Input Dims"]))
    shaped = [change for change in found.changes if change.relation == "reshaped"]
    assert shaped
    kernels = [change for change in shaped if change.kind == "kernel"]
    assert kernels[0].base_shapes == ("[[64,512],[64,512]]",)
    assert kernels[0].new_shapes == ("[[96,512],[96,512]]",)


def test_two_programs_are_not_judged_whatever_the_gate(base, read, tmp_path, capsys):
    other = read(simulate("random", seed=5, steps=6), "other.json")
    found = longpole.diff(base, other)
    assert (found.verdict, found.is_related, found.is_one_program) == ("inconclusive", False, False)
    assert "seem to be two different programs" in found.sentence
    assert "If they are one program, the mean step goes from " in found.sentence
    for sides in (("base", "other"), ("other", "base")):
        paths = [tmp_path / f"{side}.json" for side in sides]
        assert asked(capsys, *paths, "--gate", "3%")[0] == 4
    reasons = json.loads(asked(capsys, *paths, "--json")[1])["abstains_because"]
    assert [reason["code"] for reason in reasons] == ["unrelated"]


def test_unrelated_traces_without_steps_are_called_two_programs():
    sides = [
        TraceBuilder().operator(f"aten::{name}", (0, 20)).launch(name, call=(5, 9), work=(9, 50))
        for name in ("gemm", "sort")
    ]
    found = longpole.diff(*(side.read() for side in sides))
    assert (found.verdict, found.is_related) == ("inconclusive", False)
    assert "two different programs" in found.sentence


def test_several_runs_are_judged_by_run(read, a_program):
    runs = [read(run_of(a_program, seed), f"{seed}.json") for seed in range(8)]
    found = longpole.diff(runs[:4], runs[4:])
    assert (found.verdict, found.base.n_runs, found.new.n_runs) == ("neutral", 4, 4)
    assert found.base.run_noise is not None
    assert not any("One run a side" in reason for reason in found.reasons)
    few = longpole.diff(runs[:2], runs[2:4])
    assert few.verdict == "inconclusive"
    assert "too few" in few.reasons[0]


def test_ranks_of_a_run_are_one_run():
    def rank(number, period):
        builder = TraceBuilder().header(distributedInfo={"rank": number, "world_size": 2})
        for step in range(6):
            begin = period * step
            builder.step(step, (begin, begin + period))
            builder.launch("gemm", call=(begin, begin + 10), work=(begin + 10, begin + 200))
        return builder.read()

    found = longpole.diff([rank(0, 300), rank(1, 300)], [rank(0, 300), rank(1, 600)])
    assert (found.base.n_runs, found.base.ranks, found.new.rank) == (1, (0, 1), 1)
    with pytest.raises(ValueError, match="every rank"):
        longpole.diff([rank(0, 300), rank(0, 300), rank(1, 300)], rank(0, 300))


def test_sets_of_ranks_are_runs_and_the_same_as_their_traces(tmp_path):
    def rank(number, kernel_us):
        builder = TraceBuilder().header(distributedInfo={"rank": number, "world_size": 2})
        for step in range(4):
            begin = (kernel_us + 100) * step
            builder.step(step, (begin, begin + kernel_us + 90))
            builder.launch("gemm", call=(begin, begin + 10), work=(begin + 12, begin + kernel_us))
            builder.call("cudaDeviceSynchronize", (begin + 20, begin + kernel_us + 5))
        return builder

    sides = {}
    for side, slow_us in (("base", 500), ("new", 800)):
        (tmp_path / side).mkdir()
        for number, kernel_us in enumerate((400, slow_us)):
            (tmp_path / side / f"rank{number}.json").write_bytes(rank(number, kernel_us).to_bytes())
        sides[side] = longpole.read_traces(tmp_path / side)
    found = longpole.diff(sides["base"], sides["new"])
    assert (found.base.ranks, found.new.rank) == ((0, 1), 1)
    apart = [[side.trace(number) for number in side.rank_numbers] for side in sides.values()]
    assert found.to_dict() == longpole.diff(*apart).to_dict()
    assert longpole.diff([sides["base"]] * 2, [sides["new"]] * 2).base.n_runs == 2


def test_a_model_with_more_layers_keeps_its_counterparts(read):
    program, larger = (a_training(3, layers=layers) for layers in (8, 12))
    made = with_layers(program, larger, (8, 12))
    sides = [side_of(read(run_of(each, seed))) for each, seed in ((program, 1), (larger, 2))]
    n_right, n_all = truly_matched(*sides, made.origins)
    assert n_right >= 0.98 * n_all > 0
    assert longpole.diff(*(side.trace for side in sides)).is_related


def test_one_step_is_compared_with_the_others():
    builder, begin = TraceBuilder(), 0
    for step in range(8):
        end = begin + (1_500 if step == 5 else 500)
        builder.step(step, (begin, end + 10))
        builder.launch("gemm", call=(begin, begin + 10), work=(begin + 10, end))
        builder.call("cudaDeviceSynchronize", (begin + 20, end + 5))
        begin = end + 20
    trace = builder.read()
    found = longpole.diff_steps(trace, 5)
    assert found.changes[0].base_names == ("gemm",)
    assert found.new.steps == (5,)
    assert 5 not in found.base.steps
    other = longpole.diff_steps(trace, 5, 3)
    assert other.sentence.startswith("Inconclusive (fewer than 4 other steps): the mean step goes")
    assert other.base.steps == (3,)
    assert other.verdict == "inconclusive"
    with pytest.raises(longpole.WindowError):
        longpole.diff_steps(trace, 77)


def test_the_place_of_an_object_is_no_part_of_its_name(read_steps):
    base, new = (read_steps(f"<built-in method f of O object at 0x{n:x}>") for n in (255, 4080))
    found = longpole.diff(base, new)
    gaps = [change for change in found.changes if change.kind == "host_gap"]
    assert {"<built-in method f of O object>"} <= {
        name for each in gaps for name in each.base_names
    }
    assert all(each.base_count == each.new_count for each in gaps)
    assert found.n_differences == 0


def test_one_step_a_side_names_no_change():
    def one(end):
        builder = TraceBuilder().step(1, (0, end)).kernel("unlinked", (4, 9), correlation=7)
        return builder.launch("gemm", call=(0, 1), work=(10, end)).read()

    found = longpole.diff(one(100), one(200))
    assert "One step does not show how much steps differ, so no change is named." in found.sentence
    assert {row.what: (row.base, row.new) for row in found.counts}["gpu_activities"] == (1, 1)


@pytest.fixture
def read_steps():
    def read_steps(function):
        builder = TraceBuilder()
        for step in range(5):
            start = 100 * step
            builder.step(step, (start, start + 100)).python(function, (start + 40, start + 60))
            builder.launch("gemm", call=(start + 10, start + 12), work=(start + 20, start + 30))
        return builder.read()

    return read_steps


def test_a_change_that_explains_little_is_not_called_the_cause(base):
    found = longpole.diff(base, base)
    [*_, change] = found.changes
    little = replace(change, stands_out=True, effect_ns=50.0, new_ns=change.base_ns + 50.0)
    longer = replace(found.new, mean_ns=found.base.mean_ns + 1_000.0)
    shown = sentence(replace(found, new=longer, changes=(little,), n_differences=1, change=0.1))
    assert "No single change explains that: the largest is " in shown
    much = replace(little, effect_ns=900.0)
    shown = sentence(replace(found, new=longer, changes=(much,), n_differences=1, change=0.1))
    assert "What changed most: " in shown


def test_a_missing_side_or_a_gate_that_is_no_share_is_refused(base):
    with pytest.raises(ValueError, match="needs a trace"):
        longpole.diff(base, [])
    with pytest.raises(ValueError, match="a gate"):
        longpole.diff(base, base, gate=3.0)


def test_the_table_has_the_columns_of_hta(base, read, a_program):
    changed = rewritten(a_program, 7, rename=1.0)
    table = longpole.diff(base, read(run_of(changed.program, 2), "new.json")).table
    assert {"base_counts", "new_counts", "diff_counts", "diff_duration_ns"} <= set(table.columns)
    kernels = table.filter(table["kind"] == "kernel")
    assert set(kernels["counts_change_categories"]) == {"added", "removed"}
    difference = kernels["new_total_duration_ns"].sum() - kernels["base_total_duration_ns"].sum()
    assert kernels["diff_duration_ns"].sum() == pytest.approx(difference)


# Statistics


def test_noise_alone_seldom_stands_out_and_a_change_does():
    dice = np.random.default_rng(0)
    n_false = n_found = 0
    for _ in range(200):
        base, new = (1_000 * (1 + 0.05 * dice.standard_normal((30, 6))) for _ in range(2))
        n_false += any(is_beyond_noise(t, 12, 30) for t in moderated_t(base, new))
        new[7] *= 1.25
        n_found += is_beyond_noise(moderated_t(base, new)[7], 12, 30)
    assert n_false <= 0.08 * 200
    assert n_found >= 0.95 * 200
    assert moderated_t(base[:, :1], new[:, :1]) is None


def test_the_verdict_is_held_against_the_gate():
    steps = dict(enumerate([100.0, 101, 99, 100, 102, 98, 100, 101]))

    def judged(factor, gate=0.03):
        new = {step: factor * length for step, length in steps.items()}
        return judge_steps(steps, new, gate, change=factor - 1).outcome

    assert [judged(factor) for factor in (1.0, 1.01, 1.2, 0.8)] == [
        "neutral",
        "neutral",
        "regression",
        "improvement",
    ]
    assert judge_steps({1: 1.0}, {1: 2.0}, 0.03, change=1.0).outcome == "inconclusive"
    assert judge_runs([100, 101], [150, 151], 0.03, change=0.5).outcome == "inconclusive"
    apart = judge_runs([100, 101, 99, 100], [150, 151, 149, 150], 0.03, change=0.5)
    assert apart.outcome == "regression"
    noisy = judge_steps(steps, dict(enumerate([70.0, 130] * 4)), 0.03, change=0.0)
    assert noisy.outcome == "inconclusive"


def test_a_step_is_judged_by_where_it_lies_among_the_others():
    others = [100, 101, 99, 104]
    lengths = (150, 100, 90, 103.9)
    outcomes = [judge_step(others, length, 0.02).outcome for length in lengths]
    assert outcomes == ["regression", "neutral", "improvement", "neutral"]
    assert judge_step([100], 200, 0.02).outcome == "inconclusive"


def test_names_that_tell_nothing_share_nothing_out():
    assert shared_out([["aten::add"]] * 4, ["kernel_a", "kernel_b"]) is None
    assert shared_out([["aten::add"]] * 4, ["triton_fused_x", "triton_fused_y"]) is None


# The command


def asked(capsys, *arguments):
    code = program.run(["diff", *map(str, arguments)])
    return code, capsys.readouterr().out


def test_a_gate_fails_a_regression_only(tmp_path, capsys, a_program):
    name = max(launch_names(a_program), key=launch_names(a_program).count)
    run_of(a_program, 1).write(tmp_path / "base.json")
    slower(a_program, name, 9, 8.0).write(tmp_path / "slow.json")
    base, slow = tmp_path / "base.json", tmp_path / "slow.json"
    assert asked(capsys, base, slow)[0] == 0
    assert asked(capsys, base, slow, "--gate", "3%")[0] == 1
    assert asked(capsys, slow, base, "--gate", "3%")[0] == 0
    assert asked(capsys, base, base, "--gate", "3%")[0] == 0
    code, output = asked(capsys, base, slow, "--gate", "3%", "--format", "md")
    assert code == 1
    assert "### " in output
    assert "| what changed | name |" in output
    code, output = asked(capsys, base, slow, "--format", "csv")
    assert output.startswith("kind,name,base_counts,")


def test_directories_are_runs(tmp_path, capsys, a_program):
    for side in ("main", "branch"):
        (tmp_path / side).mkdir()
        for seed in range(2):
            run_of(a_program, seed).write(tmp_path / side / f"{seed}.json")
    code, output = asked(capsys, tmp_path / "main", f"{tmp_path}/branch/*.json", "--json")
    assert code == 0
    data = json.loads(output)["data"]
    assert (data["base"]["n_runs"], data["verdict"]) == (2, "neutral")


@pytest.mark.parametrize(
    "arguments",
    [("a.json",), ("a.json", "b.json", "--step", "3"), ("a.json", "--step", "3", "--against", "x")],
    ids=str,
)
def test_what_cannot_be_compared_is_an_error_of_usage(arguments, capsys):
    assert asked(capsys, *arguments)[0] == 2


def test_one_recording_is_not_two_runs(tmp_path, capsys):
    one = TraceBuilder().launch("gemm", call=(0, 1), work=(1, 9)).write(tmp_path / "one.json")
    assert program.run(["diff", str(one), str(one), "--new", str(one)]) == 2
    assert "a recording counts as one run" in capsys.readouterr().err


def test_a_side_that_is_not_there_is_said(tmp_path, capsys):
    assert asked(capsys, tmp_path / "none*.json", tmp_path)[0] == 3


def test_names_of_a_trace_stay_text(tmp_path, capsys):
    def trace(name, work):
        builder = TraceBuilder()
        for step in range(6):
            begin = 1_000 * step
            builder.step(step, (begin, begin + 900))
            builder.launch(name, call=(begin, begin + 5), work=(begin + 10, begin + work))
        return builder.write(tmp_path / f"{work}.json")

    name = "<script>alert(1)</script>|`x`"
    for form in ("md", "html"):
        _, output = asked(capsys, trace(name, 300), trace(name, 800), "--format", form)
        assert "<script>alert" not in output
        assert "alert" in output


@pytest.mark.skipif(not BEFORE_AFTER.exists(), reason=f"no traces in {BEFORE_AFTER}")
def test_loader_workers_are_an_improvement_by_data_loading():
    before, after = (
        longpole.read_trace(BEFORE_AFTER / f"resnet50_workers_{n}.json.gz") for n in (0, 4)
    )
    found = longpole.diff(before, after)
    assert found.verdict == "improvement"
    assert found.change == pytest.approx(-0.2, abs=0.02)
    assert found.changes[0].kind == "data_loading"
    assert found.changes[0].effect_ns < 0
    assert longpole.diff(before, before).n_differences == 0
    step = before.critical_path(step=found.base.verdict.window.number)
    alone = {row["kind"]: row["duration_ns"] for row in step.kind_totals}
    assert {row.kind: row.base_alone_ns for row in found.path if row.base_alone_ns} == alone


def test_where_one_step_has_another_path_than_all_together_both_are_told(tmp_path, capsys):
    trace = TraceBuilder()
    for number in range(1, 6):
        start = 100 * number
        trace.step(number, (start, start + 100)).operator("aten::mm", (start + 1, start + 99))
        trace.launch("gemm", call=(start + 50, start + 55), work=(start + 55, start + 110))
    path = trace.write(tmp_path / "trace.json")
    found = longpole.diff(*[longpole.read_trace(path)] * 2)
    kernel = next(row for row in found.path if row.kind == "kernel")
    assert (kernel.base_ns, kernel.base_alone_ns) == (13_750, 55_000)
    again = path.with_name("again.json")
    again.write_bytes(path.read_bytes())
    text = " ".join(asked(capsys, path, again)[1].split())
    assert "goes through 4 steps together: kernel is 13.8 µs of a step." in text
    assert "(`longpole path`) it is 55.0 µs" in text


def test_a_change_of_one_window_is_read_off_in_the_others(base):
    steps = base.steps["step"].to_list()
    paths = [base.critical_path(step=step) for step in steps]
    change = longpole.Scale(kind="kernel", by=0.5)
    changed = paths[0].what_if(change)
    gains = [changed.gain_in(path) for path in paths]
    assert gains == [path.what_if(change).gain_ns for path in paths]
    assert any(gains)
    start_ns, end_ns = paths[0].window
    with pytest.raises(ValueError, match="no times in common"):
        changed.gain_in(base.critical_path(between=(start_ns, end_ns)))


def of_a_step(length: int) -> TraceBuilder:
    """Steps of which the kernel takes some time."""
    builder = TraceBuilder()
    for number in range(12):
        start = 1_000 * number
        builder.step(number, (start, start + 999)).operator("aten::mm", (start, start + 16))
        builder.call("cudaLaunchKernel", (start + 10, start + 15), correlation=number + 1)
        builder.call("cudaDeviceSynchronize", (start + 18, start + 998))
        builder.kernel("gemm", (start + 16, start + 16 + length), correlation=number + 1)
    return builder


def test_where_a_trace_is_cut_the_damage_is_said_and_no_cause(tmp_path, capsys):
    base, new = of_a_step(500).to_bytes(), of_a_step(900).to_bytes()
    found = longpole.diff(longpole.read_trace(base), longpole.read_trace(new[: len(new) // 2]))
    assert (found.verdict, found.changes, found.path) == ("inconclusive", (), ())
    assert found.sentence.startswith("The new trace is damaged (")
    assert "gemm" not in found.sentence
    for name, text in {"base": base, "new": new[: len(new) // 2]}.items():
        (tmp_path / f"{name}.json").write_bytes(text)
    command = ["diff", *(str(tmp_path / f"{name}.json") for name in ("base", "new"))]
    assert program.run(command) == 4
    message = capsys.readouterr().out
    assert "The new trace is damaged (" in message
    assert "gemm" not in message
    program.run([*command, "--json"])
    data = json.loads(capsys.readouterr().out)["data"]
    assert [it["is_grave"] for it in data["new"]["damage"]] == [True]


def test_where_an_event_is_lost_the_damage_is_said_first():
    base, new = of_a_step(500).to_bytes(), of_a_step(900).to_bytes()
    lossy = new.replace(b'"name": "gemm"', b'"name": gem\x00', 1)
    assert lossy != new
    found = longpole.diff(longpole.read_trace(base), longpole.read_trace(lossy))
    assert found.sentence.startswith("The new trace is damaged (")
    assert found.new.damage
    assert found.is_lost == found.new.damage[0].is_grave


def test_a_step_of_a_damaged_trace_tells_the_damage_once():
    text = of_a_step(500).to_bytes()
    found = longpole.diff_steps(longpole.read_trace(text[: len(text) // 2]), 2)
    assert found.verdict == "inconclusive"
    assert found.sentence.count("is damaged") == 1


def of_ranks(*lengths: int, cut: int | None = None) -> list[longpole.Trace]:
    """Return a trace of each rank, one of them cut off."""
    texts = [
        of_a_step(length).header(distributedInfo={"rank": rank, "world_size": 3}).to_bytes()
        for rank, length in enumerate(lengths)
    ]
    return [
        longpole.read_trace(text[: len(text) // 2] if rank == cut else text)
        for rank, text in enumerate(texts)
    ]


def test_a_damaged_rank_is_left_out_on_both_sides_and_named():
    base, new = of_ranks(500, 600, 500), of_ranks(500, 900, 500, cut=1)
    found = longpole.diff(base, new)
    assert (found.left_out_ranks, found.base.ranks, found.new.ranks) == ((1,), (0, 2), (0, 2))
    assert found.verdict == "neutral"
    told = "A trace of rank 1 is damaged, so only 2 of 3 ranks are compared. "
    assert found.sentence.startswith(told)


def test_a_damaged_rank_is_not_left_out_if_no_other_is_whole():
    base, new = of_ranks(500, 600), of_ranks(500, 900, cut=1)
    found = longpole.diff(base[1:], new[1:])
    assert (found.verdict, found.left_out_ranks) == ("inconclusive", ())
    assert found.sentence.startswith("The new trace is damaged (")


def test_a_trace_without_launches_is_the_same_program_as_itself():
    trace = TraceBuilder().kernel("gemm", (0, 50)).kernel("gemm", (60, 110)).read()
    found = longpole.diff(trace, trace)
    assert "the two sides are the same" in found.sentence
    assert "different programs" not in found.sentence


def test_a_change_that_the_cost_of_recording_may_have_made_is_no_verdict():
    faster = Judgement("improvement", (-0.4, -0.2), ("told",))
    asked = {"gate": 0.03, "is_estimated": True}
    assert judge_cost(faster, None, known=0.0, **asked) == faster
    assert judge_cost(faster, (-0.5, -0.1), known=0.0, **asked) == faster
    for changes in [(-0.5, -0.02), (-0.5, 0.3), (0.1, 0.3)]:
        within = judge_cost(faster, changes, known=-0.01, **asked)
        assert within.outcome == "inconclusive"
        assert "--step-time" in within.reasons[0]
    # Recording does not make GPU work longer.
    by_gpu = judge_cost(faster, (-0.5, 0.3), known=-0.2, **asked)
    assert (by_gpu.outcome, by_gpu.reasons[1]) == ("improvement", "told")
    against = judge_cost(faster, (-0.5, 0.3), known=0.2, **asked)
    assert against.outcome == "inconclusive"
    # Where steps were timed, more of their times would not help.
    timed = judge_cost(faster, (-0.5, 0.3), known=0.0, **(asked | {"is_estimated": False}))
    assert timed.outcome == "inconclusive"
    assert "--step-time" not in timed.reasons[0]


def timed_apart(path, *factors):
    """Write times of steps without the profiler, as factors of the recorded step, to a trace."""
    document = json.loads(path.read_text())
    recorded_ns = longpole.read_trace(path).recording_cost()["recorded_step_ns"]
    times = [round(factor * recorded_ns) for factor in factors]
    document["longpole"] = {"step_time_ns": {"before": times, "after": []}}
    return longpole.read_trace(json.dumps(document).encode())


def test_steps_timed_without_the_profiler_have_their_range(base, tmp_path):
    path = tmp_path / "base.json"
    timed = timed_apart(path, 0.8, 0.85, 0.9)
    cost = timed.recording_cost()
    assert cost["status"] == "measured"
    found = longpole.diff(timed, timed)
    bounds = cost["least_step_ns"], cost["most_step_ns"]
    assert (found.base.range_source, found.base.range_ns) == ("measured", bounds)
    assert "measured range" in str(found.blocks()[1])
    mixed = longpole.diff(base, timed)
    assert [mixed.base.range_source, mixed.new.range_source] == ["estimated", "measured"]
    assert "(measured " in mixed.sentence
    assert "possible range" in str(mixed.blocks()[1])


def test_a_mean_step_outside_the_measured_range_is_said(base):
    found = longpole.diff(base, base)
    for bounds, number in (((0.5, 1.5), 0), ((0.5, 0.9), 1)):
        range_ns = tuple(bound * found.base.mean_ns for bound in bounds)
        timed = replace(found.base, range_ns=range_ns, range_source="measured")
        changed = replace(found, base=timed, change=-0.1, n_differences=1)
        assert str(changed.blocks()[-1]).count("they differ from the timed ones") == number
        assert sentence(changed).count("(measured ") == 1 - number


def test_times_that_do_not_fit_the_recorded_steps_are_said(base, tmp_path):
    unfit = timed_apart(tmp_path / "base.json", 1.5)
    reasons = " ".join(longpole.diff(base, unfit).reasons)
    assert "Of the new side: steps that were timed without a profiler took " in reasons
    assert "Of the base: " not in reasons


def test_the_range_of_a_step_without_the_profiler_is_shown(base):
    found = longpole.diff(base, base)
    low, high = found.base.range_ns
    assert low < found.base.mean_ns < high
    assert longpole.diff(base, base, as_recorded=True).base.range_ns is None


def test_a_kind_that_only_moved_onto_the_path_is_not_called_slower(base):
    found = longpole.diff(base, base)
    mean_ns = found.base.mean_ns
    moved = PathChange("kernel", 0.0, mean_ns / 2, 0.0, 0.0, mean_ns / 2, mean_ns / 2)
    slower = PathChange("copy", 0.0, mean_ns / 2, 0.0, 0.0, 0.0, mean_ns / 2)
    notes = str(replace(found, path=(moved, slower)).blocks()[-1])
    assert "On the critical path, kernel goes from 0 s to " in notes
    assert "On the critical path, copy" not in notes


def test_the_effect_is_shown_on_a_narrow_terminal(tmp_path, capsys, a_program, monkeypatch):
    name = max(launch_names(a_program), key=launch_names(a_program).count)
    run_of(a_program, 1).write(tmp_path / "base.json")
    slower(a_program, name, 9, 8.0).write(tmp_path / "slow.json")
    monkeypatch.setenv("COLUMNS", "80")
    output = asked(capsys, tmp_path / "base.json", tmp_path / "slow.json")[1]
    [title] = [line for line in output.splitlines() if line.strip().startswith("what changed")]
    assert title.split()[-4:-1] == ["base", "new", "effect"] or title.endswith("effect")
    assert max(map(len, output.splitlines()[1:])) <= 80
