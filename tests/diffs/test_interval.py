"""The interval of the change contains what happened, whatever recording cost."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

import longpole
from longpole.cli import program as commands
from longpole.testing import TraceBuilder
from oracles.simulator import Machine, Run, Scale
from oracles.simulator.losses import PlantedCosts, with_overhead
from oracles.simulator.program import Backward, Busy, Frame
from oracles.simulator.programs import training
from real_traces import SHARED

if TYPE_CHECKING:
    from oracles.simulator.program import Item, Program

GATE = 0.03
ANSWERS = SHARED / "cases" / "answers"


@dataclass
class Pair:
    """Recordings of both sides, and the change that was planted, without the profiler."""

    base: object
    new: object
    free: float


def _more_host(program: Program, extra_ns: int, before: str = "nn.Module") -> Program:
    """Return the program with host time before each function of a name, by default each layer."""

    def edited(item: Item) -> list[Item]:
        if isinstance(item, Frame | Backward):
            item = replace(item, body=tuple(each for it in item.body for each in edited(it)))
        is_wanted = isinstance(item, Frame) and item.name.startswith(before)
        return [Busy(extra_ns), item] if is_wanted else [item]

    return replace(program, main=tuple(each for it in program.main for each in edited(it)))


def pair(seed: int, folder) -> Pair:
    """Simulate a program and a changed one, with and without the cost of recording."""
    dice = random.Random(f"interval {seed}")  # noqa: S311 - no secret
    program = training(seed, steps=7, layers=4, world_size=1, kernel_scale=dice.choice([0.2, 1, 3]))
    operator_ns = dice.randint(800, 3_000)
    costs = PlantedCosts(operator_ns, round(operator_ns * dice.uniform(0.6, 1.4)), 2 * operator_ns)
    plants = [
        (program, []),
        (program, [Scale("kernel", by=dice.choice([0.5, 2]))]),
        (_more_host(program, dice.choice([5_000, 40_000])), []),
        (program, [Scale("data_loading", by=8)]),
    ]
    changed, changes = plants[seed % len(plants)]
    traces, free = [], []
    for side, (which, scales) in enumerate([(program, []), (changed, changes)]):
        machine = Machine(seed=2 * seed + side, spread=dice.choice([0.01, 0.04]))
        for is_free in (False, True):
            path = folder / f"{side}{is_free}.json"
            Run(which if is_free else with_overhead(which, costs), machine, scales).write(path)
            (free if is_free else traces).append(longpole.read_trace(path))
    change = longpole.diff(*free, as_recorded=True).change
    return Pair(*traces, change)


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(it, marks=pytest.mark.slow) for it in range(3, 8))]
)
def test_the_interval_holds_what_was_planted_and_no_verdict_is_wrong(seed, tmp_path):
    planted = pair(seed, tmp_path)
    for base, new, free in (
        (planted.base, planted.new, planted.free),
        (planted.new, planted.base, 1 / (1 + planted.free) - 1),
    ):
        found = longpole.diff(base, new, gate=GATE)
        low, high = found.interval
        assert low - 0.002 <= free <= high + 0.002
        right = {
            "regression": free > GATE,
            "improvement": free < -GATE,
            "neutral": abs(free) <= GATE + 0.002,
            "inconclusive": True,
        }
        assert right[found.verdict]
        effects = [(it.effect_ns, it.change_ns) for it in found.changes if it.effect_ns is not None]
        assert all(abs(effect) <= abs(change) + 1 for effect, change in effects)
        assert all(effect * change >= 0 for effect, change in effects)


def test_a_wait_between_threads_is_named_if_no_work_changed(tmp_path, said):
    program = training(3, steps=7, layers=4, world_size=1, kernel_scale=0.1)
    later = _more_host(program, 300_000, before="torch/_tensor.py(570)")
    for side, each in enumerate((program, later)):
        Run(each, Machine(seed=side, spread=0.01)).write(tmp_path / f"{side}.json")
    found = longpole.diff(tmp_path / "0.json", tmp_path / "1.json")
    assert found.verdict == "regression"
    said.within(found.sentence)


def test_text_json_and_exit_code_are_one_decision(tmp_path, capsys):
    planted = pair(3, tmp_path)
    paths = [str(tmp_path / f"{side}False.json") for side in (0, 1)]
    found = longpole.diff(planted.base, planted.new)
    assert found.verdict == "regression"
    for gate, code in (("3%", 1), (f"{found.interval[0] - 0.01:.3f}", 1), ("0.99", 4)):
        assert commands.run(["diff", *paths, "--gate", gate]) == code
        word = "Regression" if code == 1 else "Inconclusive"
        assert f"  {word}" in capsys.readouterr().out
    assert commands.run(["diff", *reversed(paths), "--gate", "3%"]) == 0


@pytest.mark.skipif(not ANSWERS.is_dir(), reason="the cases of ../shared are not here")
def test_a_change_far_above_the_gate_fails_it_with_one_run_of_each_side(capsys):
    sides = [str(ANSWERS / f"gate_{side}.json.gz") for side in ("before", "after")]
    assert commands.run(["diff", *sides, "--gate", "5%"]) == 1
    assert "  Regression: " in capsys.readouterr().out


def _without(path, *categories):
    """Write a recording again without events that tell what recording cost."""
    document = json.loads(path.read_bytes())
    rows = document["traceEvents"]
    document["traceEvents"] = [row for row in rows if row.get("cat") not in categories]
    other = path.with_name(f"without_{len(categories)}.json")
    other.write_text(json.dumps(document))
    return other


@pytest.mark.parametrize("lost", [("cpu_op",), ("cpu_op", "cuda_runtime")])
def test_a_side_that_does_not_tell_what_recording_cost_takes_that_of_the_other(tmp_path, lost):
    costs = PlantedCosts(2_000, 1_500, 4_000)
    program = with_overhead(training(2, steps=7, layers=4, world_size=1), costs)
    Run(program, Machine(seed=1)).write(tmp_path / "base.json")
    sides = [tmp_path / "base.json", _without(tmp_path / "base.json", *lost)]
    for pair in (sides, sides[::-1]):
        found = longpole.diff(*pair, is_same_program=True)
        assert found.interval[0] <= 0 <= found.interval[1]
        is_told = any("allows for the cost of the other side" in it for it in found.reasons)
        assert is_told == ("cuda_runtime" in lost)


def test_a_cost_that_no_side_tells_is_not_removed_and_that_is_said():
    def recorded(kernel_us):
        builder = TraceBuilder()
        for step in range(6):
            begin = 2 * kernel_us * step
            builder.step(step, (begin, begin + 2 * kernel_us - 1))
            builder.launch("gemm", call=(begin, begin + 10), work=(begin + 12, begin + kernel_us))
        return builder.read()

    found = longpole.diff(recorded(500), recorded(800))
    assert found.change == found.recorded_change
    assert any("unknown and not removed" in it for it in found.reasons)
