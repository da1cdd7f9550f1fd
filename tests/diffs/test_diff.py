"""What `longpole diff` says, held against simulated runs of which the truth is known."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import longpole
from longpole.diffs.sentences import sentence
from longpole.diffs.sides import side_of
from longpole.testing import TraceBuilder
from oracles.rewriting import (
    a_training,
    launch_names,
    other_device,
    rewritten,
    run_of,
    slowed,
    truly_matched,
    with_layers,
)
from oracles.simulator import simulate
from real_traces import SHARED

BEFORE_AFTER = SHARED / "traces" / "before_after"


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
    found = longpole.diff(base, read(slowed(a_program, names[nth], 9, 1.05), "slow.json"))
    first = found.changes[0]
    assert (first.kind, first.base_names, first.stands_out) == ("kernel", (names[nth],), True)
    assert first.change == pytest.approx(0.05, abs=0.02)


def test_a_much_slower_kernel_is_a_regression_by_what_it_does_to_the_step(base, read, a_program):
    name = max(launch_names(a_program), key=launch_names(a_program).count)
    found = longpole.diff(base, read(slowed(a_program, name, 9, 8.0), "slow.json"))
    assert found.verdict == "regression"
    assert found.interval[0] > 0
    first = found.changes[0]
    assert first.base_names == (name,)
    # What the graph says of the one change is what happened, but for noise.
    happened_ns = found.new.mean_ns - found.base.mean_ns
    assert first.effect_ns == pytest.approx(happened_ns, rel=0.1)


def test_the_account_of_the_path_sums_to_the_change_of_the_step(base, read, a_program):
    other = read(slowed(a_program, launch_names(a_program)[4], 9, 3.0), "slow.json")
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


def test_two_programs_are_not_judged_whatever_the_gate(base, read, tmp_path, asked, said):
    other = read(simulate("random", seed=5, steps=6), "other.json")
    found = longpole.diff(base, other)
    assert (found.verdict, found.is_related, found.is_one_program) == ("inconclusive", False, False)
    said.within(found.sentence)
    said.within(found.sentence)
    for sides in (("base", "other"), ("other", "base")):
        paths = [tmp_path / f"{side}.json" for side in sides]
        assert asked(*paths, "--gate", "3%")[0] == 4
    reasons = json.loads(asked(*paths, "--json")[1])["abstains_because"]
    assert [reason["code"] for reason in reasons] == ["unrelated"]


def test_unrelated_traces_without_steps_are_called_two_programs():
    sides = [
        TraceBuilder().operator(f"aten::{name}", (0, 20)).launch(name, call=(5, 9), work=(9, 50))
        for name in ("gemm", "sort")
    ]
    found = longpole.diff(*(side.read() for side in sides))
    assert (found.verdict, found.is_related) == ("inconclusive", False)
    assert "two different programs" in found.sentence


def test_a_model_with_more_layers_keeps_its_counterparts(read):
    program, larger = (a_training(3, layers=layers) for layers in (8, 12))
    made = with_layers(program, larger, (8, 12))
    sides = [side_of(read(run_of(each, seed))) for each, seed in ((program, 1), (larger, 2))]
    n_right, n_all = truly_matched(*sides, made.origins)
    assert n_right >= 0.98 * n_all > 0
    assert longpole.diff(*(side.trace for side in sides)).is_related


def test_the_place_of_an_object_is_no_part_of_its_name(read_steps):
    base, new = (read_steps(f"<built-in method f of O object at 0x{n:x}>") for n in (255, 4080))
    found = longpole.diff(base, new)
    gaps = [change for change in found.changes if change.kind == "host_gap"]
    assert {"<built-in method f of O object>"} <= {
        name for each in gaps for name in each.base_names
    }
    assert all(each.base_count == each.new_count for each in gaps)
    assert found.n_differences == 0


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


def test_a_change_that_explains_little_is_not_called_the_cause(base, said):
    found = longpole.diff(base, base)
    [*_, change] = found.changes
    little = replace(change, stands_out=True, effect_ns=5e3, new_ns=change.base_ns + 5e3)
    longer = replace(found.new, mean_ns=found.base.mean_ns + 100_000.0)
    shown = sentence(replace(found, new=longer, changes=(little,), n_differences=1, change=0.1))
    said.within(shown)
    much = replace(little, effect_ns=90e3)
    shown = sentence(replace(found, new=longer, changes=(much,), n_differences=1, change=0.1))
    assert "What changed most: " in shown


def test_the_table_has_the_columns_of_hta(base, read, a_program):
    changed = rewritten(a_program, 7, rename=1.0)
    table = longpole.diff(base, read(run_of(changed.program, 2), "new.json")).table
    assert {"base_counts", "new_counts", "diff_counts", "diff_duration_ns"} <= set(table.columns)
    kernels = table.filter(table["kind"] == "kernel")
    assert set(kernels["counts_change_categories"]) == {"added", "removed"}
    difference = kernels["new_total_duration_ns"].sum() - kernels["base_total_duration_ns"].sum()
    assert kernels["diff_duration_ns"].sum() == pytest.approx(difference)


def test_a_gate_fails_a_regression_only(tmp_path, asked, a_program):
    name = max(launch_names(a_program), key=launch_names(a_program).count)
    run_of(a_program, 1).write(tmp_path / "base.json")
    slowed(a_program, name, 9, 8.0).write(tmp_path / "slow.json")
    base, slow = tmp_path / "base.json", tmp_path / "slow.json"
    assert asked(base, slow)[0] == 0
    assert asked(base, slow, "--gate", "3%")[0] == 1
    assert asked(slow, base, "--gate", "3%")[0] == 0
    assert asked(base, base, "--gate", "3%")[0] == 0
    code, output = asked(base, slow, "--gate", "3%", "--format", "md")
    assert code == 1
    assert "### " in output
    assert "| what changed | name |" in output
    code, output = asked(base, slow, "--format", "csv")
    assert output.startswith("kind,name,base_counts,")


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


def test_a_trace_without_launches_is_the_same_program_as_itself(said):
    trace = TraceBuilder().kernel("gemm", (0, 50)).kernel("gemm", (60, 110)).read()
    found = longpole.diff(trace, trace)
    said.within(found.sentence)
    assert "different programs" not in found.sentence
