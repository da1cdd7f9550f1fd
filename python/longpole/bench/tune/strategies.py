"""Ways to search a space: which candidates to run next, given what was measured so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from longpole.bench.tune.space import label_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from longpole.bench.tune.space import Point, Space

__all__ = ["STRATEGIES", "Effort", "Evaluate", "Strategy", "exhaustive", "halving", "random"]

_MOST_AT_FIRST: Final = 1000
_KEPT_SHARE: Final = 4
_TRIALS: Final = 100


class Evaluate(Protocol):
    """Runs points until each has so many runs; gives their costs, None for one that failed."""

    def __call__(self, points: Sequence[Point], n_runs: int) -> list[float | None]:
        """Run points."""
        ...


@dataclass(frozen=True, slots=True)
class Effort:
    """How much to search.

    Parameters
    ----------
    n_trials
        Candidates to try; None is what the strategy thinks best.
    n_runs
        Of each candidate that is measured in full.
    n_finalists
        Candidates that are left at the end.
    seed
        Of whatever is drawn at random.
    """

    n_trials: int | None = None
    n_runs: int = 5
    n_finalists: int = 4
    seed: int = 0


class Strategy(Protocol):
    """A search: asks for candidates and is told their costs."""

    def __call__(self, space: Space, evaluate: Evaluate, effort: Effort) -> None:
        """Search a space."""
        ...


def exhaustive(space: Space, evaluate: Evaluate, effort: Effort) -> None:
    """Run every candidate in full."""
    evaluate(list(space), effort.n_runs)


def random(space: Space, evaluate: Evaluate, effort: Effort) -> None:
    """Run candidates in full that are drawn at random."""
    evaluate(space.sample(effort.n_trials or _TRIALS, effort.seed), effort.n_runs)


def halving(space: Space, evaluate: Evaluate, effort: Effort) -> None:
    """Run many candidates once, and the better ones again (successive halving).

    A quarter goes on to each round, which brings twice as many runs, until no more are left than
    finalists.
    """
    points = space.sample(effort.n_trials or _MOST_AT_FIRST, effort.seed)
    n_runs = 1
    while True:
        costs = evaluate(points, n_runs)
        ranked = _ranked(points, costs)
        if n_runs >= effort.n_runs or len(ranked) <= effort.n_finalists:
            return
        points = ranked[: max(effort.n_finalists, len(points) // _KEPT_SHARE)]
        n_runs = min(2 * n_runs, effort.n_runs)


def _ranked(points: Sequence[Point], costs: Sequence[float | None]) -> list[Point]:
    """Order the points that did not fail by cost, equal ones by name."""
    found = [
        (cost, label_of(point), point)
        for point, cost in zip(points, costs, strict=True)
        if cost is not None
    ]
    return [point for *_, point in sorted(found, key=lambda each: each[:2])]


STRATEGIES: Final[Mapping[str, Callable[[Space, Evaluate, Effort], None]]] = {
    "exhaustive": exhaustive,
    "random": random,
    "halving": halving,
}
