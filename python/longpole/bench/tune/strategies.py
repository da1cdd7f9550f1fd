"""Search strategies: which candidates to run next, given the measurements so far."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from longpole.bench.tune.space import label_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.bench.tune.effort import Effort, Evaluate, Strategy
    from longpole.bench.tune.space import Point, Space, Value

__all__ = ["STRATEGIES", "exhaustive", "find_strategy", "halving", "random"]

_MOST_AT_FIRST: Final = 1000
_KEPT_SHARE: Final = 4
_TRIALS: Final = 100

# A value of a parameter is dropped after this many candidates that cost this many times the best.
_ENOUGH: Final = 8
_FAR_MORE: Final = 3.0


def exhaustive(space: Space, evaluate: Evaluate, effort: Effort) -> None:
    """Run every candidate in full."""
    evaluate(list(space), effort.n_runs)


def random(space: Space, evaluate: Evaluate, effort: Effort) -> None:
    """Run randomly drawn candidates in full."""
    evaluate(space.sample(effort.n_trials or _TRIALS, effort.seed), effort.n_runs)


def halving(space: Space, evaluate: Evaluate, effort: Effort) -> None:
    """Run many candidates once, and the better ones more often (successive halving).

    A quarter enters each next round, which doubles the number of runs, until only the finalists are
    left. Half of the candidates decide which of the others are run at all.
    """
    points = space.sample(effort.n_trials or _MOST_AT_FIRST, effort.seed)
    first, rest = points[: len(points) // 2], points[len(points) // 2 :]
    points = first + _promising(first, evaluate(first, 1), rest)
    n_runs = 1
    while True:
        costs = evaluate(points, n_runs)
        ranked = _ranked(points, costs)
        if n_runs >= effort.n_runs or len(ranked) <= effort.n_finalists:
            return
        points = ranked[: max(effort.n_finalists, len(points) // _KEPT_SHARE)]
        n_runs = min(2 * n_runs, effort.n_runs)


def _promising(
    tried: Sequence[Point], costs: Sequence[float | None], untried: Sequence[Point]
) -> list[Point]:
    """Drop candidates that share a value with enough others that all failed or cost far more."""
    by_value: defaultdict[tuple[str, Value], list[float]] = defaultdict(list)
    for point, cost in zip(tried, costs, strict=True):
        for chosen in point.items():
            by_value[chosen].append(math.inf if cost is None else cost)
    far_more = _FAR_MORE * min((cost for cost in costs if cost is not None), default=math.inf)
    hopeless = {
        chosen
        for chosen, found in by_value.items()
        if len(found) >= _ENOUGH and min(found) > far_more
    }
    return [point for point in untried if hopeless.isdisjoint(point.items())]


def _ranked(points: Sequence[Point], costs: Sequence[float | None]) -> list[Point]:
    """Sort the points that did not fail by cost, then by name."""
    found = [
        (cost, label_of(point), point)
        for point, cost in zip(points, costs, strict=True)
        if cost is not None
    ]
    return [point for *_, point in sorted(found, key=lambda each: each[:2])]


def find_strategy(name: str) -> Strategy:
    """Return a strategy by its name.

    Besides those of `STRATEGIES` there are `optuna`, and `kernel-tuner:NAME` for the strategies of
    Kernel Tuner.

    Raises
    ------
    ValueError
        No strategy has that name.
    MissingDependencyError
        The package of the strategy is not installed.
    """
    source, _, other = name.partition(":")
    if name == "optuna":
        from longpole.bench.tune.optuna_search import optuna_search

        return optuna_search
    if source == "kernel-tuner" and other:
        from longpole.bench.tune.kernel_tuner_search import kernel_tuner_search

        return kernel_tuner_search(other)
    if name not in STRATEGIES:
        known = ", ".join([*STRATEGIES, "optuna", "kernel-tuner:NAME"])
        message = f"there is no strategy {name!r}; there are {known}"
        raise ValueError(message)
    return STRATEGIES[name]


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "exhaustive": exhaustive,
    "random": random,
    "halving": halving,
}
