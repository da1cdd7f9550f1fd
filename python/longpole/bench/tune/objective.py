"""What to optimise: the time, the energy, or a printed number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final, Literal

from longpole._core import check_pattern
from longpole.bench.extraction import PATTERN_PREFIX, extract
from longpole.bench.records.record import Outcome
from longpole.bench.run.output import NO_RESULTS

if TYPE_CHECKING:
    from longpole.bench.records.record import Record

__all__ = ["Objective"]

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
        """Return the quantity of each sample of a run, or of the run; empty if it failed."""
        if self.metric == "time" and record.outcome is Outcome.OK and record.samples_ns:
            return list(record.samples_ns)
        value = self.value(record)
        return [] if value is None else [value]

    def cost(self, value: float) -> float:
        """Return the value to minimise: the value, or its reciprocal if more is better."""
        return value if self.goal == "min" else 1 / value

    def _printed(self, output: str) -> float | None:
        """Return the last matching value in the end of the output."""
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
    """Return what the last match of a pattern has in a group, in time linear in the output."""
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
