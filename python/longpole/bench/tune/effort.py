"""The inputs of a strategy: how much to search, and how to run candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.bench.tune.space import Point, Space

__all__ = ["Effort", "Evaluate", "Strategy"]


class Evaluate(Protocol):
    """Runs points until each has `n_runs` runs; returns their costs, None for a failed one."""

    def __call__(self, points: Sequence[Point], n_runs: int) -> list[float | None]:
        """Run points."""
        ...


@dataclass(frozen=True, slots=True)
class Effort:
    """How much to search.

    Parameters
    ----------
    n_trials
        Candidates to try; None for the strategy's default.
    n_runs
        Runs of each candidate that is measured in full.
    n_finalists
        Number of candidates left at the end.
    seed
        Seed of all random draws.
    """

    n_trials: int | None = None
    n_runs: int = 7
    n_finalists: int = 4
    seed: int = 0


class Strategy(Protocol):
    """A search: requests runs of candidates and receives their costs."""

    def __call__(self, space: Space, evaluate: Evaluate, effort: Effort) -> None:
        """Search a space."""
        ...
