"""Search strategies: which candidates to run next, given the measurements so far.

In addition to longpole's own, there are those of Optuna and Kernel Tuner (extras `optuna` and
`kernel-tuner`).
"""

from __future__ import annotations

import math
import random as python_random
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, Final, Protocol

from longpole.bench.tune.space import label_of
from longpole.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from longpole.bench.tune.space import Point, Space, Value


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


_MOST_AT_FIRST: Final = 1000
_KEPT_SHARE: Final = 4
_MOST_KEPT_SHARE: Final = 2
_ABOVE: Final = 2.0
"""A candidate above the cut by up to this many differences between runs is kept."""
_TRIALS: Final = 100

# A value of a parameter is dropped if this many candidates with it all failed, or cost this many
# times as much as the best one.
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
    left. Half of the candidates decide which of the others are run at all. The best are run twice
    before any is dropped: if runs of a candidate differ, up to half enter the next round.
    """
    points = space.sample(effort.n_trials or _MOST_AT_FIRST, effort.seed)
    first, rest = points[: len(points) // 2], points[len(points) // 2 :]
    points = first + _promising(first, evaluate(first, 1), rest)
    n_runs, noise = 1, 0.0
    while True:
        ranked = _ranked(points, evaluate(points, n_runs))
        if n_runs >= effort.n_runs or len(ranked) <= effort.n_finalists:
            return
        if n_runs == 1:
            noise = _noise(ranked[: effort.n_finalists], evaluate)
        n_kept = max(effort.n_finalists, len(points) // _KEPT_SHARE)
        n_most = max(n_kept, len(points) // _MOST_KEPT_SHARE)
        limit = _ABOVE * noise / math.sqrt(n_runs)
        cut = ranked[n_kept - 1 : n_kept]
        kept = [each for each in ranked[n_kept:n_most] if each[0] <= cut[0][0] * (1 + limit)]
        points = [point for _, point in [*ranked[:n_kept], *kept]]
        n_runs = min(2 * n_runs, effort.n_runs)


def _noise(best: Sequence[tuple[float, Point]], evaluate: Evaluate) -> float:
    """Run the best candidates again; return by how much two runs of one usually differ."""
    again = evaluate([point for _, point in best], 2)
    # The cost of two runs is their median: half of what they differ by is from the first.
    differ = [
        2 * abs(cost / first - 1)
        for (first, _), cost in zip(best, again, strict=True)
        if cost is not None and first > 0
    ]
    return median(differ) if differ else 0.0


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


def _ranked(points: Sequence[Point], costs: Sequence[float | None]) -> list[tuple[float, Point]]:
    """Sort the points that did not fail by cost, then by name."""
    found = [
        (cost, label_of(point), point)
        for point, cost in zip(points, costs, strict=True)
        if cost is not None
    ]
    return [(cost, point) for cost, _, point in sorted(found, key=lambda each: each[:2])]


def find_strategy(name: str) -> Strategy:
    """Return a strategy by its name.

    In addition to those of `STRATEGIES`, there are `optuna`, and `kernel-tuner:NAME` for the
    strategies of Kernel Tuner.

    Raises
    ------
    ValueError
        No strategy has that name.
    MissingDependencyError
        The package of the strategy is not installed.
    """
    source, _, other = name.partition(":")
    if name == "optuna":
        return optuna_search
    if source == "kernel-tuner" and other:
        return kernel_tuner_search(other)
    if name not in STRATEGIES:
        known = ", ".join([*STRATEGIES, "optuna", "kernel-tuner:NAME"])
        message = f"no strategy {name!r}; there are {known}"
        raise ValueError(message)
    return STRATEGIES[name]


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "exhaustive": exhaustive,
    "random": random,
    "halving": halving,
}


_ASKS_A_TRIAL: Final = 20


def optuna_search(space: Space, evaluate: Evaluate, effort: Effort) -> None:
    """Request candidates from Optuna's tree-structured Parzen estimator, one at a time.

    Points that the constraints forbid are reported as pruned, and failed candidates as failed. A
    point that is requested again gets its known cost without a run.

    Raises
    ------
    MissingDependencyError
        Optuna is not installed.
    """
    try:
        import optuna
    except ImportError as error:
        message = "this strategy needs Optuna\nhint: pip install 'longpole[optuna]'"
        raise MissingDependencyError(message) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    states = optuna.trial.TrialState
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=effort.seed))
    n_trials = min(effort.n_trials or _TRIALS, space.n_combinations)
    costs: dict[str, float | None] = {}
    for _ in range(_ASKS_A_TRIAL * n_trials):
        if len(costs) >= n_trials:
            return
        trial = study.ask()
        point = _suggested(trial, space)
        if not space.allows(point):
            study.tell(trial, state=states.PRUNED)
            continue
        label = label_of(point)
        if label not in costs:
            (costs[label],) = evaluate([point], effort.n_runs)
        cost = costs[label]
        study.tell(trial, cost, state=states.FAIL if cost is None else states.COMPLETE)


def _suggested(trial: Any, space: Space) -> Point:
    """Make Optuna choose by index, so that it knows the order of numbers."""
    point = {}
    for name, values in space.parameters.items():
        is_ordered = all(isinstance(value, int | float) for value in values)
        is_ordered = is_ordered and list(values) == sorted(values)
        if is_ordered:
            place = trial.suggest_int(name, 0, len(values) - 1)
        else:
            place = trial.suggest_categorical(name, list(range(len(values))))
        point[name] = values[place]
    return point


_MOST_THREADS: Final = 1_000_000_000


def kernel_tuner_search(name: str) -> Strategy:
    """Return a strategy of Kernel Tuner by name, such as `genetic_algorithm`.

    Raises
    ------
    MissingDependencyError
        Kernel Tuner is not installed.
    ValueError
        The strategy does not exist.
    """
    try:
        from kernel_tuner.interface import strategy_map
    except ImportError as error:
        message = "this strategy needs Kernel Tuner\nhint: pip install 'longpole[kernel-tuner]'"
        raise MissingDependencyError(message) from error
    if name not in strategy_map:
        message = f"Kernel Tuner has no strategy {name!r}; it has {', '.join(sorted(strategy_map))}"
        raise ValueError(message)
    return partial(_searched, strategy_map[name])


def _searched(module: Any, space: Space, evaluate: Evaluate, effort: Effort) -> None:
    from kernel_tuner.interface import Options
    from kernel_tuner.searchspace import Searchspace
    from kernel_tuner.util import StopCriterionReached, TuningBudget

    parameters = {name: list(values) for name, values in space.parameters.items()}
    allowed: Any = list(space.constraints) if space.listed is None else space.allows
    candidates = Searchspace(parameters, allowed, _MOST_THREADS)
    n_trials = min(effort.n_trials or _TRIALS, candidates.size)
    options = Options(
        tune_params=parameters,
        restrictions=allowed,
        strategy_options=Options(max_fevals=n_trials),
        objective=["time"],
        objective_higher_is_better=[False],
        max_fevals=n_trials,
        budget=TuningBudget(None, n_trials),
        cache={},
        metrics=None,
        verbose=False,
    )
    with _seeded(effort.seed):
        try:
            module.tune(candidates, _Bench(space, evaluate, effort), options)
        except StopCriterionReached:
            return


class _Bench:
    """A runner for Kernel Tuner that measures candidates through longpole."""

    def __init__(self, space: Space, evaluate: Evaluate, effort: Effort) -> None:
        self._space, self._evaluate, self._effort = space, evaluate, effort
        self._costs: dict[tuple[Value, ...], float | None] = {}

    def run(self, parameter_space: Sequence[Any], tuning_options: Any) -> list[Any]:
        """Measure configurations; None for those beyond the budget."""
        from kernel_tuner.util import RuntimeFailedConfig

        results: list[Any] = []
        for values in parameter_space:
            key = tuple(values)
            if key not in self._costs and tuning_options.budget.is_done():
                results.append(None)
                continue
            if key not in self._costs:
                tuning_options.budget.add_evaluations(1)
                point = self._space.own(dict(zip(self._space.parameters, key, strict=True)))
                (self._costs[key],) = self._evaluate([point], self._effort.n_runs)
            cost = self._costs[key]
            shown = {"__error__": RuntimeFailedConfig()} if cost is None else {"time": cost}
            results.append({**dict(zip(self._space.parameters, key, strict=True)), **shown})
        return results

    def add_strategy_time(self, _seconds: float) -> None:
        """Ignore the time that the strategy needs."""


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the global random numbers, which Kernel Tuner uses, within the context."""
    import numpy as np

    states = python_random.getstate(), np.random.get_state()  # noqa: NPY002 - Kernel Tuner draws from the global generator
    python_random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    try:
        yield
    finally:
        python_random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
