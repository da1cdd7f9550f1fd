"""What a verdict predicted of a remedy is held against the run in which it was applied."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

import longpole
from longpole.cli import program
from longpole.diffs.predictions import predictions
from longpole.diffs.values import Counts
from oracles.simulator import Drop, NoWait, Scale, simulate
from real_traces import SHARED

BEFORE_AFTER = SHARED / "traces" / "before_after"
REMEDIES = {
    "loader_workers": [Drop("data_loading")],
    "communication_overlap": [Drop("communication")],
    "blocking_calls": [NoWait("sync_return")],
}


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


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("remedy", REMEDIES)
def test_the_measured_gain_of_a_remedy_lies_in_its_interval(pair, remedy, seed):
    rows = pair(*REMEDIES[remedy], seed=seed).predictions
    found = next(row for row in rows if row.remedy == remedy)
    assert found.gain_low - 0.02 <= found.measured <= found.gain_high + 0.02


def test_what_was_not_applied_is_not_judged(pair):
    assert pair().predictions == ()
    assert pair(Scale("kernel", by=0.8), Scale("data_loading", by=0.8)).predictions == ()


def test_of_a_part_of_a_remedy_at_least_that_part_is_predicted():
    def verdict(gain_ns: int, low: float, high: float) -> SimpleNamespace:
        row = {"remedy": "allocation", "then": low}
        gain = SimpleNamespace(duration_ns=gain_ns, low=low, high=high)
        remedy = SimpleNamespace(effort="code", **row, gain=gain)
        return SimpleNamespace(status="ok", remedies=[remedy])

    (found,) = predictions(verdict(1_000, 0.2, 0.3), verdict(250, 0.05, 0.1), 0.18)
    assert (found.gain_low, found.gain_high) == (pytest.approx(0.15), 0.3)


@pytest.mark.parametrize(("new", "n_applied"), [(34.0, 0), (1.0, 1)])
def test_a_graph_that_gains_nothing_anymore_was_not_applied(new, n_applied):
    row = {"remedy": "cuda_graph", "then": 0.2, "effort": "code"}
    gain = SimpleNamespace(duration_ns=1_000, low=0.2, high=0.3)
    base = SimpleNamespace(status="ok", remedies=[SimpleNamespace(**row, gain=gain)])
    without = SimpleNamespace(status="ok", remedies=[])
    counts = [Counts("launches", 33.0, new)]
    assert len(predictions(base, without, 0.25, counts)) == n_applied


def test_remedies_that_were_applied_together_are_not_told_apart(pair):
    found = pair(Drop("data_loading"), Drop("communication"))
    assert len(found.predictions) > 1
    assert not any(row.is_alone for row in found.predictions)
    assert "predicted" not in found.sentence


@pytest.mark.skipif(not BEFORE_AFTER.is_dir(), reason="needs ../shared/data/traces/before_after")
def test_the_command_shows_what_was_predicted_of_a_real_change(capsys):
    sides = [str(BEFORE_AFTER / f"resnet50_workers_{n}.json.gz") for n in (0, 4)]
    assert program.run(["diff", *sides]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "20.3 %" in text
    assert program.run(["diff", *sides, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["data"]["predictions"]
    assert "loader_workers" in {row["remedy"] for row in rows}
    assert {round(row["measured"], 2) for row in rows} == {0.2}
