"""Searches with the strategies of Kernel Tuner (extra `kernel-tuner`)."""

from __future__ import annotations

import random
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from longpole.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.bench.tune.effort import Effort, Evaluate, Strategy
    from longpole.bench.tune.space import Space, Value

__all__ = ["kernel_tuner_search"]

_TRIALS: Final = 100
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
    """A runner for Kernel Tuner that measures candidates where longpole does."""

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
            told = {"__error__": RuntimeFailedConfig()} if cost is None else {"time": cost}
            results.append({**dict(zip(self._space.parameters, key, strict=True)), **told})
        return results

    def add_strategy_time(self, _seconds: float) -> None:
        """Ignore the time that the strategy needs."""


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the global random numbers, which Kernel Tuner uses, within the context."""
    import numpy as np

    states = random.getstate(), np.random.get_state()  # noqa: NPY002 - those that it draws
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
