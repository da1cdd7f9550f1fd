"""Searches over recorded runs with their recorded noise, to choose a strategy for a space."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from longpole.bench.records.reading import ResultsFile
from longpole.bench.tune.objective import Ledger, measuring_s
from longpole.bench.tune.search import evaluated
from longpole.bench.tune.space import Space, label_of
from longpole.bench.tune.strategies import find_strategy
from longpole.words.data import Data

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from longpole.bench.records.record import Record
    from longpole.bench.tune.objective import Objective
    from longpole.bench.tune.space import Point
    from longpole.bench.tune.strategies import Effort

__all__ = ["Replayed", "Simulation", "recorded_runs", "simulate"]


@dataclass(frozen=True, slots=True)
class Replayed(Data):
    """The results of a strategy on a recorded space."""

    strategy: str
    n_searches: int
    n_found: int
    """Number of searches whose choice is worse than the best by at most the gate."""
    regret: float
    """How much worse the median choice is than the best candidate, as a fraction of the latter."""
    worst_regret: float
    n_runs: float
    """Mean number of runs per search."""
    measuring_share: float
    """Mean measuring time, as a fraction of measuring every candidate in full."""


@dataclass(frozen=True, slots=True)
class Simulation(Data):
    """Strategies compared on a recorded space."""

    n_candidates: int
    n_failed: int
    n_recorded_runs: int
    best: str
    """The candidate with the smallest median cost."""
    best_value: float
    gate: float
    exhaustive_s: float
    """Time in seconds to measure every candidate in full."""
    strategies: list[Replayed]


class _Recorded:
    """Returns a randomly drawn recorded run of each requested point."""

    def __init__(self, records: Iterable[Record], objective: Objective) -> None:
        self.objective = objective
        self.points: dict[str, Point] = {}
        self.runs: defaultdict[str, list[Record]] = defaultdict(list)
        self.chance = random.Random(0)  # noqa: S311 - a random draw, not a secret
        for record in records:
            point = record.tags.get("point")
            if isinstance(point, dict):
                self.points.setdefault(label_of(point), point)
                self.runs[label_of(point)].append(record)
        if not self.points:
            message = "no record contains the point of the space that it ran"
            raise ValueError(message)

    def run(self, points: Sequence[Point]) -> list[Record]:
        """Draw a run of each point."""
        return [self.chance.choice(self.runs[label_of(point)]) for point in points]

    def costs(self) -> dict[str, float]:
        """Return the median cost of each candidate that never failed."""
        values = {
            label: [self.objective.value(record) for record in runs]
            for label, runs in self.runs.items()
        }
        return {
            label: self.objective.cost(median(value for value in each if value is not None))
            for label, each in values.items()
            if None not in each
        }

    def seconds(self, n_runs: int) -> float:
        """Return the time to measure all candidates in full; a failed one ends in its first run."""
        sound = self.costs()
        return sum(
            median(map(measuring_s, runs)) * (n_runs if label in sound else 1)
            for label, runs in self.runs.items()
        )


def recorded_runs(path: str | os.PathLike[str]) -> list[Record]:
    """Read the runs of a results file.

    Raises
    ------
    ValueError
        The file contains none.
    """
    found = [record for record in ResultsFile(path).final_records() if record.is_decided]
    if not found:
        message = f"{path} contains no run of a search"
        raise ValueError(message)
    return found


def simulate(
    records: Iterable[Record],
    objective: Objective,
    strategies: Sequence[str],
    effort: Effort,
    *,
    n_searches: int = 20,
    gate: float = 0.03,
) -> Simulation:
    """Compare strategies by replaying recorded runs, without running candidates.

    Parameters
    ----------
    records
        Records of a search, preferably with several runs of each candidate.
    objective
        The quantity to optimise.
    strategies
        Names of the strategies.
    effort
        How much to search; the seed is that of the first search.
    n_searches
        Number of searches per strategy, each with its own seed.
    gate
        A choice that is worse by at most this counts as found.

    Raises
    ------
    ValueError
        No record belongs to a point, or every candidate failed.
    """
    recorded = _Recorded(records, objective)
    costs = recorded.costs()
    if not costs:
        message = "every recorded candidate failed"
        raise ValueError(message)
    best = min(costs, key=lambda label: (costs[label], label))
    return Simulation(
        n_candidates=len(recorded.points),
        n_failed=len(recorded.points) - len(costs),
        n_recorded_runs=sum(map(len, recorded.runs.values())),
        best=best,
        best_value=objective.cost(costs[best]),
        gate=gate,
        exhaustive_s=recorded.seconds(effort.n_runs),
        strategies=[
            _replayed(recorded, name, effort, n_searches, costs, gate) for name in strategies
        ],
    )


def _replayed(  # noqa: PLR0917 - one search after the other
    recorded: _Recorded,
    name: str,
    effort: Effort,
    n_searches: int,
    costs: dict[str, float],
    gate: float,
) -> Replayed:
    least = min(costs.values())
    ledgers = [_searched(recorded, name, effort, number) for number in range(n_searches)]
    chosen = [label_of(ledger.ranked()[0]) if ledger.values else "" for ledger in ledgers]
    regrets = [costs.get(label, float("inf")) / least - 1 for label in chosen]
    whole_s = recorded.seconds(effort.n_runs)
    return Replayed(
        strategy=name,
        n_searches=n_searches,
        n_found=sum(regret <= gate for regret in regrets),
        regret=median(regrets),
        worst_regret=max(regrets),
        n_runs=sum(ledger.n_runs for ledger in ledgers) / n_searches,
        measuring_share=sum(each.measuring_s for each in ledgers) / n_searches / whole_s,
    )


def _searched(recorded: _Recorded, name: str, effort: Effort, number: int) -> Ledger:
    recorded.chance.seed(f"{name}:{number}")
    ledger = Ledger(recorded.objective)
    space = Space.of_points(recorded.points.values())
    find_strategy(name)(
        space,
        partial(evaluated, ledger, recorded, None),
        replace(effort, seed=effort.seed + number),
    )
    return ledger
