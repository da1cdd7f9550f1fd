"""The quantity to optimise (time, energy, or a printed number), and its measurements so far."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, Final, Literal

from longpole._core import check_pattern
from longpole.bench.extraction import PATTERN_PREFIX, extract
from longpole.bench.records.record import Outcome
from longpole.bench.run.output import NO_RESULTS
from longpole.bench.tune.space import label_of
from longpole.words.data import Data

if TYPE_CHECKING:
    from longpole.bench.records.record import Record
    from longpole.bench.tune.space import Point

_NS_PER_S: Final = 1e9


@dataclass(frozen=True, slots=True)
class Objective:
    """The quantity to minimise or maximise.

    Parameters
    ----------
    metric
        `time`: the time that the candidate prints, or its duration; `energy`: in joules, from the
        power of the device; else a field of its output in `format`, or a group of that pattern.
    goal
        `min` or `max`.
    format
        Output format of candidates, as for a job; `none` is the time of the whole process.
    """

    metric: str = "time"
    goal: Literal["min", "max"] = "min"
    format: str = NO_RESULTS

    def __post_init__(self) -> None:
        if self.goal not in {"min", "max"}:
            message = f"a goal is min or max, not {self.goal!r}"
            raise ValueError(message)
        if self.metric not in {"time", "energy"} and self.format == NO_RESULTS:
            message = f"set the format of the output that contains {self.metric!r}"
            raise ValueError(message)
        if self.format.startswith(PATTERN_PREFIX):
            check_pattern(self.format.removeprefix(PATTERN_PREFIX))

    @property
    def job_format(self) -> str:
        """Format for the job: only times are results."""
        return self.format if self.metric == "time" else NO_RESULTS

    @property
    def unit(self) -> str:
        """Unit of its values; empty if only the candidates know it."""
        return {"time": "ns", "energy": "J"}.get(self.metric, "")

    @property
    def missing(self) -> str:
        """Description of the missing quantity, for a run without it."""
        if self.metric == "energy":
            return "the power of the device was not read, or the run was too short"
        return f"it printed no {self.metric!r} above 0 in the format of the task"

    def value(self, record: Record) -> float | None:
        """Return the quantity of a run; None if it failed or lacks it."""
        if record.outcome is not Outcome.OK:
            return None
        if self.metric == "time":
            value = _time_ns(record)
        elif self.metric == "energy":
            value = _joules(record)
        else:
            value = self._printed(record.stdout_tail)
        return value if value is not None and 0 < value < math.inf else None

    def values(self, record: Record) -> list[float]:
        """Return the quantity of each sample of a run, or one for the run; empty if it failed."""
        if self.metric == "time" and record.outcome is Outcome.OK and record.samples_ns:
            return list(record.samples_ns)
        value = self.value(record)
        return [] if value is None else [value]

    def cost(self, value: float) -> float:
        """Return the value to minimise: the value, or its reciprocal if more is better."""
        return value if self.goal == "min" else 1 / value

    def _printed(self, output: str) -> float | None:
        """Return the last matching value in the recorded end of the output."""
        if self.format.startswith(PATTERN_PREFIX):
            found = _in_groups(output, self.format.removeprefix(PATTERN_PREFIX), self.metric)
        else:
            fields = extract(output.encode(), format=self.format).fields
            found = [row["value"] for row in fields.to_dicts() if row["name"] == self.metric]
        try:
            return float(found[-1] or "") if found else None
        except ValueError:
            return None


def _in_groups(output: str, pattern: str, name: str) -> list[str | None]:
    """Return the values of a group in the last match of a pattern, in time linear in the output."""
    import polars as pl

    pattern = f"(?m){pattern}"
    matches = pl.Series([output], dtype=pl.String).str.extract_all(pattern).explode()
    groups = matches.drop_nulls().tail(1).str.extract_groups(pattern).struct
    return groups.field(name).to_list() if name in groups.fields else []


def _time_ns(record: Record) -> float | None:
    if record.samples_ns:
        return median(record.samples_ns)
    if record.results:
        return median(each.time_ns for each in record.results)
    return None if record.seconds is None else record.seconds * _NS_PER_S


def _joules(record: Record) -> float | None:
    during = record.environment.get("during") or record.sampling.get("during") or {}
    watts, seconds = during.get("power_w"), record.seconds
    return None if watts is None or seconds is None else watts * seconds


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
    """Number of runs before the change."""
    measuring_s: float
    """Total time of the runs before the change, in seconds."""
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

    def noise(self) -> float | None:
        """Return by how much the first two runs of a candidate usually differ, as a fraction."""
        firsts = [values[:2] for values in self.values.values() if len(values) > 1]
        differ = [abs(second / first - 1) for first, second in firsts if first > 0]
        return median(differ) if differ else None

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
    shown = record.environment.get("device")
    name = shown.get("name") if isinstance(shown, dict) else None
    return str(name or record.device or "")


def measuring_s(record: Record) -> float:
    """Return the measuring time of a run in seconds."""
    if record.seconds is not None:
        return record.seconds
    n_calls: int = record.sampling.get("n_calls", 1)
    return sum(record.samples_ns) * n_calls / _NS_PER_S
