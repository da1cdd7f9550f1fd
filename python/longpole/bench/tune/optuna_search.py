"""Searches with the samplers of Optuna (extra `optuna`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.bench.tune.space import label_of
from longpole.errors import MissingDependencyError

if TYPE_CHECKING:
    from longpole.bench.tune.effort import Effort, Evaluate
    from longpole.bench.tune.space import Point, Space

__all__ = ["optuna_search"]

_TRIALS: Final = 100
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
