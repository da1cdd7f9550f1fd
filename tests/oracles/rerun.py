"""Verdicts held against the truth: programs that are changed and run again.

A side is never removed altogether from a program that runs again, but scaled to a
fiftieth: without any time on the host, all annotations shrink to one instant, and work
falls into the wrong step.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import longpole
from oracles.simulator import Machine, Run, Scale, simulate
from oracles.simulator.changes import NoWait

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.answer import Verdict

HOST = ("operator", "runtime", "host_gap", "launch", "handover", "data_loading")
SIDES = {
    "kernels": ("kernel",),
    "host": HOST,
    "communication": ("communication",),
    "copies": ("copy",),
}
WAITS = ("sync_return", "event_wait", "queue_full")
REMAINS = 0.02
MARGIN = 0.05


@dataclass(frozen=True)
class Judged:
    """A verdict, and what each side really gains."""

    verdict: Verdict
    truth: dict[str, float]

    @property
    def is_clear(self) -> bool:
        """Whether one side gains more than all others by a margin."""
        first, second, *_ = sorted(self.truth.values(), reverse=True)
        return first - second >= MARGIN

    @property
    def is_right(self) -> bool:
        """Whether the side that is named first gains most."""
        best = max(self.truth, key=lambda side: self.truth[side])
        return self.verdict.sides[:1] == (best,)

    @property
    def errors(self) -> dict[str, float]:
        """By how much each side gains more than is printed; below 0 it gains less."""
        gains = {side: gain.value for side, gain in self.verdict.gains.items()}
        return {side: true - max(gains[side], 0.0) for side, true in self.truth.items()}


def varied_program(seed: int) -> Run:
    """Run a program whose kernels, host, copies and communication are of all proportions."""
    dice = random.Random(f"varied {seed}")  # noqa: S311 - not a secret
    name = dice.choice(("training", "training", "inference", "random"))
    options = {"random": {"steps": 4}, "training": {"steps": 5}, "inference": {"steps": 5}}
    factors = {
        "kernel": _factor(dice, 0.1, 4.0),
        "communication": _factor(dice, 0.2, 6.0),
        "copy": _factor(dice, 0.3, 6.0),
        "data_loading": _factor(dice, 0.2, 8.0),
    }
    host = _factor(dice, 0.2, 3.0)
    factors |= dict.fromkeys(("operator", "runtime", "host_gap"), host)
    changes = [Scale(kind, by=by) for kind, by in factors.items()]
    return simulate(name, seed=seed, machine=Machine(), changes=changes, **options[name])


def _factor(dice: random.Random, least: float, most: float) -> float:
    return round(math.exp(dice.uniform(math.log(least), math.log(most))), 3)


def judged(run: Run, folder: Path, *, sync_records: bool) -> Judged:
    """Ask for the verdict on a run, and run it again without each side."""
    run.write(folder / "trace.json", sync_records=sync_records)
    trace = longpole.read_trace(folder / "trace.json", args="ids")
    verdict = trace.verdict(whole=not any(window.step for window in run.truth.windows))
    windows = {window.name: window.duration_ns for window in run.truth.windows}
    before_ns = _length_ns(windows, verdict)
    truth = {
        side: 1 - _length_ns(changed, verdict) / before_ns
        for side, changed in _without_sides(run).items()
    }
    return Judged(verdict, truth)


@lru_cache(maxsize=1)  # the same run is judged with its records of synchronisation and without
def _without_sides(run: Run) -> dict[str, dict[str, int]]:
    """Run a program again without each side; give how long each window takes."""
    sides = {side: [Scale(kind, by=REMAINS) for kind in kinds] for side, kinds in SIDES.items()}
    sides["waits"] = [NoWait(kind) for kind in WAITS]
    return {side: run.what_if([*run.changes, *changes]) for side, changes in sides.items()}


def _length_ns(windows: dict[str, int], verdict: Verdict) -> int:
    """Return how long the windows of a verdict take together."""
    if verdict.window.unit == "trace":
        return windows["trace"]
    return sum(windows.get(f"step {step} period", 0) for step in verdict.steps)
