"""A device clock that jumps changes neither the path nor what limits, and no recorded table."""

from __future__ import annotations

import random

import pytest

import longpole
from longpole import Question
from longpole.engine.arguments import ARGUMENTS
from oracles.simulator import Machine, Run
from oracles.simulator.programs import inference, training

SEEDS = range(3)
LONG_SEEDS = range(3, 60)
STEPS = 24
NEAR = 0.02
"""How much a gain may differ: clocks are known to 3 us, and a jump to a step."""

MISSED = 0.05
"""Share of programs with a gain further off: nothing tells when a clock jumps on an idle device."""


def program(seed):
    """Return a program that waits for its device in each step."""
    scale = (1, 0.4, 2.5)[seed // 2 % 3]
    return (training, inference)[seed % 2](seed, steps=STEPS, kernel_scale=scale)


def jumping(program, seed, length_ns):
    """Return a run whose device clock jumps once or twice, by 14 to 60 us either way."""
    dice = random.Random(seed)  # noqa: S311 - nothing secret
    places = [(0.25, 0.75)] if dice.random() < 0.5 else [(0.25, 0.4), (0.6, 0.75)]
    jumps = tuple(
        (int(length_ns * dice.uniform(*place)), dice.choice((-1, 1)) * dice.randint(14, 60) * 1000)
        for place in places
    )
    offset_ns = dice.choice((0, 0, 40_000, -25_000))
    return Run(
        program,
        Machine(seed=seed, device_clock_offset_ns=offset_ns, device_clock_jumps_ns=jumps),
    )


def read(run, path):
    run.write(path)
    return longpole.read_trace(path, args=ARGUMENTS)


def compared(seed, folder):
    """Return a program with one clock, the same with a clock that jumps, and its run."""
    it = program(seed)
    even = Run(it, Machine(seed=seed))
    (whole,) = [window for window in even.truth.windows if window.step is None]
    run = jumping(it, seed, whole.duration_ns)
    return read(even, folder / "even.json"), read(run, folder / "jumping.json"), run


def shares(path):
    """Return the share of each kind of work in a path; latencies count as one."""
    found = {}
    for row in path.kind_totals:
        kind = row["kind"] if row["kind"] in {"kernel", "copy", "operator", "runtime"} else "other"
        found[kind] = found.get(kind, 0) + row["share"]
    return found


@pytest.mark.parametrize(
    "seeds", [SEEDS, pytest.param(LONG_SEEDS, marks=pytest.mark.slow)], ids=len
)
def test_the_answer_is_that_of_one_clock(seeds, tmp_path):
    missed = []
    for seed in seeds:
        even, jumps, run = compared(seed, tmp_path)
        question = Question(whole=True, as_recorded=True)
        expected, found = even.answer(question), jumps.answer(question)
        assert found.limit == expected.limit, seed
        apart = [abs(found.gains[side].value - gain.value) for side, gain in expected.gains.items()]
        missed += [seed] if max(apart) > NEAR else []
        expected, found = (trace.critical_path(whole=True) for trace in (even, jumps))
        assert shares(found) == pytest.approx(shares(expected), abs=NEAR), seed
        shifts = found.clock_shifts
        assert len(shifts) == 1 + len(run.machine.device_clock_jumps_ns), seed
    assert len(missed) <= MISSED * len(seeds), missed


def test_tables_keep_the_recorded_times(tmp_path):
    _, jumps, run = compared(0, tmp_path)
    assert len(jumps.critical_path(whole=True).clock_shifts) > 1
    recorded = sorted(
        (record["start_ns"], record["duration_ns"])
        for record in run.events
        if record.get("cat") == "kernel"
    )
    rows = jumps.events.filter(jumps.events["kind"].cast(str) == "kernel")
    starts = rows.sort("start_ns", "duration_ns").select("start_ns", "duration_ns").rows()
    base_ns = starts[0][0] - recorded[0][0]
    assert starts == [(start_ns + base_ns, ns) for start_ns, ns in recorded]


def test_check_says_from_when_each_shift_counts(tmp_path):
    program = training(3, steps=STEPS)
    length_ns = Run(program, Machine(seed=3)).truth.window("trace").duration_ns
    at_ns = length_ns // 2
    machine = Machine(seed=3, device_clock_jumps_ns=((at_ns, 200_000),))
    trace = read(Run(program, machine), tmp_path / "trace.json")
    (found,) = [each for each in longpole.check(trace) if each.code == "clock_jump"]
    assert found.count == 1
    assert found.sentence.startswith("jumps of the clock of device 0: at first equal to the host's")
    assert "ahead of the host's" in found.sentence
    (_, _), (from_ns, shift_ns) = (shift[1:] for shift in trace.critical_path().clock_shifts)
    assert abs(shift_ns + 200_000) < 5_000
    begin_ns = trace.events["start_ns"].min()
    step_ns = length_ns // STEPS
    assert abs(from_ns - begin_ns - at_ns) < step_ns
