"""The measurements of a search so far: values, failures, and the best over time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.tune.space import label_of
from longpole.data import Data

if TYPE_CHECKING:
    from longpole.bench.records.record import Record
    from longpole.bench.tune.objective import Objective
    from longpole.bench.tune.space import Point

__all__ = ["Candidate", "Ledger", "Step", "measuring_s"]

_NS_PER_S: Final = 1e9


@dataclass(frozen=True, slots=True)
class Candidate(Data):
    """A point that was tried."""

    label: str
    point: Mapping[str, Any]
    outcome: str
    """`ok`, or how it failed. A candidate that failed once is dropped."""
    value: float | None
    """Median over its runs; None if it failed."""
    n_runs: int
    measuring_s: float
    """Total time of its runs in seconds."""
    values: tuple[float, ...] = ()
    """Values of its runs."""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Step(Data):
    """A change of the best candidate so far."""

    n_runs: int
    """Number of runs until then."""
    measuring_s: float
    """Total time of these runs in seconds."""
    label: str
    value: float


@dataclass(slots=True)
class Ledger:
    """The measurements of the screening."""

    objective: Objective
    values: dict[str, list[float]] = field(default_factory=dict)
    points: dict[str, Point] = field(default_factory=dict)
    failures: dict[str, Record] = field(default_factory=dict)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    curve: list[Step] = field(default_factory=list)
    n_runs: int = 0
    measuring_s: float = 0.0
    finals_s: float = 0.0
    best: str | None = None
    device: str = ""

    def enter(self, point: Point, record: Record) -> None:
        """Add a run. A candidate that failed once is dropped."""
        label = label_of(point)
        self.points.setdefault(label, point)
        self.device = self.device or _device_of(record)
        seconds = measuring_s(record)
        self.seconds[label] += seconds
        self.measuring_s += seconds
        self.n_runs += 1
        value = self.objective.value(record)
        if value is None:
            self.failures[label] = record
            self.values.pop(label, None)
        else:
            self.values.setdefault(label, []).append(value)
        self._follow(label)

    def needs_run(self, label: str, n_runs: int) -> bool:
        """Whether a candidate is still in the search and has fewer runs."""
        return label not in self.failures and len(self.values.get(label, ())) < n_runs

    def cost(self, label: str) -> float | None:
        """Return the cost of a candidate; None if it failed."""
        values = self.values.get(label)
        return self.objective.cost(median(values)) if values else None

    def ranked(self) -> list[Point]:
        """Return the working candidates, most runs first, then best first."""
        keys = {
            label: (-len(values), self.cost(label), label) for label, values in self.values.items()
        }
        return [self.points[label] for label in sorted(keys, key=lambda each: keys[each])]

    def candidates(self) -> list[Candidate]:
        """Return all tried candidates."""
        return [self._candidate(label, point) for label, point in self.points.items()]

    def _candidate(self, label: str, point: Point) -> Candidate:
        failure = self.failures.get(label)
        values = self.values.get(label, [])
        outcome, message = ("ok", "") if failure is None else (failure.outcome, failure.message)
        if failure is not None and outcome == "ok":
            outcome, message = "no_result", self.objective.missing
        return Candidate(
            label=label,
            point=dict(point),
            outcome=str(outcome),
            value=median(values) if values else None,
            n_runs=len(values),
            measuring_s=self.seconds[label],
            values=tuple(values),
            message=message,
        )

    def _follow(self, label: str) -> None:
        """Extend the curve if another candidate or value is now the best."""
        cost = self.cost(label)
        if label == self.best:  # after one more run it may no longer be the best
            self.best = min(self.values, key=self._place, default=None)
        elif cost is not None and (
            self.best is None or self._place(label) < self._place(self.best)
        ):
            self.best = label
        else:
            return
        if self.best is None:
            return
        value = median(self.values[self.best])
        step = Step(self.n_runs, self.measuring_s, self.best, value)
        if not self.curve or (self.curve[-1].label, self.curve[-1].value) != (step.label, value):
            self.curve.append(step)

    def _place(self, label: str) -> tuple[float, str]:
        return self.objective.cost(median(self.values[label])), label


def _device_of(record: Record) -> str:
    told = record.environment.get("device")
    name = told.get("name") if isinstance(told, dict) else None
    return str(name or record.device or "")


def measuring_s(record: Record) -> float:
    """Return the measuring time of a run in seconds."""
    if record.seconds is not None:
        return record.seconds
    n_calls: int = record.sampling.get("n_calls", 1)
    return sum(record.samples_ns) * n_calls / _NS_PER_S
