"""What a strategy is given: how much to search, and how to run candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.bench.tune.space import Point, Space

__all__ = ["Effort", "Evaluate", "Strategy"]


class Evaluate(Protocol):
    """Runs points until each has `n_runs` runs; gives their costs, None for one that failed."""

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
    n_runs: int = 7
    n_finalists: int = 4
    seed: int = 0


class Strategy(Protocol):
    """A search: asks for candidates and is told their costs."""

    def __call__(self, space: Space, evaluate: Evaluate, effort: Effort) -> None:
        """Search a space."""
        ...
