"""What a verdict predicted of a remedy is held against the run in which it was applied."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

import longpole
from longpole.cli import program
from longpole.diffs.predictions import predictions
from longpole.diffs.values import Counts
from oracles.rewriting import edited
from oracles.simulator import Machine, Run, Scale, simulate
from oracles.simulator.program import Busy, Frame
from oracles.simulator.programs import training
from real_traces import SHARED

BEFORE_AFTER = SHARED / "traces" / "before_after"


@pytest.fixture
def pair(tmp_path):
    """Run a program, and run it again with some changes."""

    def pair(*changes, seed=1):
        run = simulate("training", seed=seed, steps=6)
        run.write(tmp_path / "base.json")
        run.again(changes).write(tmp_path / "new.json")
        # The simulated profiler costs nothing.
        sides = (tmp_path / "base.json", tmp_path / "new.json")
        return longpole.diff(*sides, as_recorded=True)

    return pair


def _without_item(item):
    return [] if isinstance(item, Frame) and item.name == "aten::item" else [item]


def _with_workers(item):
    """Return frames whose data is loaded by workers: the main thread only waits for the queue."""
    if not isinstance(item, Frame) or "_SingleProcess" not in item.name:
        return [item]
    name = item.name.replace("_SingleProcess", "_MultiProcessing")
    return [replace(item, name=name, body=(Busy(2_000),))]


APPLIED = {"loader_workers": _with_workers, "blocking_calls": _without_item}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("remedy", APPLIED)
def test_the_measured_gain_of_a_remedy_lies_in_its_interval(tmp_path, remedy, seed):
    program = training(seed, steps=6)
    Run(program, Machine(seed=seed)).write(tmp_path / "base.json")
    after = edited(program, APPLIED[remedy])
    Run(after, Machine(seed=seed)).write(tmp_path / "new.json")
    sides = (tmp_path / "base.json", tmp_path / "new.json")
    rows = longpole.diff(*sides, as_recorded=True).predictions
    found = next(row for row in rows if row.remedy == remedy)
    assert found.gain_low - 0.02 <= found.measured <= found.gain_high + 0.02


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize(
    "change",
    [
        Scale("kernel", by=0.3),
        Scale("data_loading", by=0.1),
        Scale("communication", by=0.1),
    ],
    ids=["kernels", "loading", "communication"],
)
def test_work_that_became_faster_is_no_applied_remedy(pair, change, seed):
    """The calls that wait and the loader on the main thread are still there."""
    found = {row.remedy for row in pair(change, seed=seed).predictions}
    assert not found - {"slow_kernels"}


def test_what_was_not_applied_is_not_judged(pair):
    assert pair().predictions == ()
    assert pair(Scale("kernel", by=0.8), Scale("data_loading", by=0.8)).predictions == ()


def test_of_a_part_of_a_remedy_at_least_that_part_is_predicted():
    def verdict(gain_ns: int, low: float, high: float) -> SimpleNamespace:
        row = {"remedy": "allocation", "is_listed": True, "surely_saves": True}
        gain = SimpleNamespace(duration_ns=gain_ns, low=low, high=high)
        remedy = SimpleNamespace(effort="code", **row, gain=gain)
        return SimpleNamespace(status="ok", remedies=[remedy])

    (found,) = predictions(verdict(1_000, 0.2, 0.3), verdict(250, 0.05, 0.1), 0.18)
    assert (found.gain_low, found.gain_high) == (pytest.approx(0.15), 0.3)


@pytest.mark.parametrize(("new", "n_applied"), [(34.0, 0), (1.0, 1)])
def test_a_graph_that_gains_nothing_anymore_was_not_applied(new, n_applied):
    row = {"remedy": "cuda_graph", "is_listed": True, "surely_saves": True, "effort": "code"}
    gain = SimpleNamespace(duration_ns=1_000, low=0.2, high=0.3)
    base = SimpleNamespace(status="ok", remedies=[SimpleNamespace(**row, gain=gain)])
    without = SimpleNamespace(status="ok", remedies=[])
    counts = [Counts("launches", 33.0, new)]
    assert len(predictions(base, without, 0.25, counts)) == n_applied


def test_remedies_that_were_applied_together_are_not_told_apart(tmp_path):
    program = training(1, steps=6)
    Run(program, Machine(seed=1)).write(tmp_path / "base.json")
    after = edited(edited(program, _with_workers), _without_item)
    Run(after, Machine(seed=1)).write(tmp_path / "new.json")
    found = longpole.diff(tmp_path / "base.json", tmp_path / "new.json")
    assert len(found.predictions) > 1
    assert not any(row.is_alone for row in found.predictions)
    assert "predicted" not in found.sentence


@pytest.mark.skipif(not BEFORE_AFTER.is_dir(), reason="needs ../shared/data/traces/before_after")
def test_the_command_shows_what_was_predicted_of_a_real_change(capsys):
    sides = [str(BEFORE_AFTER / f"resnet50_workers_{n}.json.gz") for n in (0, 4)]
    assert program.run(["diff", *sides, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["data"]["predictions"]
    assert "loader_workers" in {row["remedy"] for row in rows}
    assert {round(row["measured"], 2) for row in rows} == {0.2}
