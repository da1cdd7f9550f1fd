"""Whether a change matters: exact rank intervals, compared with the smallest change that matters.

With several runs per side, each run contributes one number, as in `longpole bench compare`. With
one run per side, each step does: their spread is the noise within a run. The noise between runs is
often larger and then unknown.

A few steps do not show the spread of one kernel reliably. The variance of each kernel's steps is
therefore combined with that of all work of its kind, as in a moderated t-test (Smyth, "Linear
models and empirical Bayes methods", 2004). The error rate holds for all changes together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist, median
from typing import TYPE_CHECKING, Final

from longpole.rows.statistics.ranks import median_limits, robust_spread, shift_limits
from longpole.words.wording import change, count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from longpole.diffs.values import Outcome

    Steps = NDArray[np.float64]

_LEVEL: Final = 0.05
FEWEST: Final = 4
"""Minimum number of runs or steps of each side."""
_FEWEST_PAIRS: Final = 6

# Steps are paired if that reduces their spread to this share.
_PAIRED_BELOW: Final = 0.7

_BETWEEN_RUNS: Final = (
    "One run of each side does not show how much runs differ: give several runs of each side."
)
# Two runs of one program on the same model of machine often differ by less: of 73 pairs that were
# recorded on two days, 7 differed by 3 to 10 % beyond the noise of their timings, and 3 by more.
_BETWEEN_SESSIONS: Final = 0.10
_SAME_WORK: Final = (
    "Both sides do the same work equally often. Between two runs, the machine alone may change its "
    "time by 10 %: only a larger change counts."
)

_WITHIN: Final = "The whole interval is within the gate."
_NOT_BEYOND: Final = "There is a change, but the interval does not lie beyond the gate."
_OPEN: Final = "The interval contains both no change and a change beyond the gate."
_BY_MACHINE: Final = "The machine may have made the whole change."
_WITHIN_MACHINE: Final = "What is left of the change is within what the machine may have done."
_OF_INTERVAL: Final = frozenset({_WITHIN, _NOT_BEYOND, _OPEN, _BY_MACHINE, _WITHIN_MACHINE})
"""Reasons that hold for one interval only."""

# Weight of the variance of all work of a kind, as a number of further steps.
_PRIOR_DEGREES: Final = 4.0

# Probability that at least one of all reported changes is false.
_ANY_FALSE: Final = 0.05

# Clock resolution: a spread is at least this fraction of the time.
_LEAST_SPREAD: Final = 1e-4


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, its interval, and the reason."""

    outcome: Outcome
    interval: tuple[float, float] | None
    reasons: tuple[str, ...]
    change: float | None = None
    """The change without the effect of the machine, if known."""


def judge_runs(
    base: Sequence[float], new: Sequence[float], gate: float, *, change: float
) -> Judgement:
    """Compare two sets of runs by their mean step."""
    if min(len(base), len(new)) < FEWEST:
        few = f"{len(base)} and {len(new)} runs are too few: each side needs {FEWEST}."
        return Judgement("inconclusive", None, (few,))
    limits = _limits(base, new)
    told = f"{len(base)} and {count(len(new), 'run')}, each by its mean step."
    # The sides were recorded one after the other: only a change beyond the gate is reported.
    return _held(limits, gate, change, (told,), beyond=gate)


def judge_steps(
    base: Mapping[int, float],
    new: Mapping[int, float],
    gate: float,
    *,
    change: float,
    is_same_work: bool = False,
) -> Judgement:
    """Compare two single runs by their steps, given by number.

    Steps with the same number are paired if that reduces noise, for example if every second step
    does something else.
    """
    if min(len(base), len(new)) < FEWEST:
        n_steps = f"{len(base)} and {count(len(new), 'step')}"
        few = f"{n_steps} are too few to separate a change from noise: each side needs {FEWEST}."
        return Judgement("inconclusive", None, (few, _BETWEEN_RUNS))
    limits = _paired_limits(base, new) or _limits([*base.values()], [*new.values()])
    return _of_two_runs(limits, gate, change, is_same_work=is_same_work)


def judge_timings(
    base: Sequence[float], new: Sequence[float], gate: float, *, is_same_work: bool = False
) -> Judgement:
    """Compare two single runs by steps that were timed without the profiler."""
    limits, change = _limits(base, new), median(new) / median(base) - 1
    return _of_two_runs(limits, gate, change, is_same_work=is_same_work)


def _of_two_runs(
    limits: tuple[float, float] | None,
    gate: float,
    change: float,
    *,
    is_same_work: bool,
) -> Judgement:
    """Compare two single runs; a small change of the same work may be that of the machine."""
    beyond = _BETWEEN_SESSIONS if is_same_work else 0.0
    reasons = (*((_SAME_WORK,) if is_same_work else ()), _BETWEEN_RUNS)
    return _held(limits, gate, change, reasons, beyond=beyond)


def judge_machine(
    interval: tuple[float, float],
    change: float,
    gate: float,
    found: Judgement,
    ratio: float,
) -> Judgement:
    """Compare two single runs from machines, or under loads, of different speed.

    Parameters
    ----------
    interval
        The change of the mean step if the base's host had run both sides.
    change
        Its middle.
    gate
        The smallest change that matters.
    found
        The judgement of the steps as recorded.
    ratio
        Time of unchanged operators on the new side divided by that of the base.
    """
    slower = "slower" if ratio > 1 else "faster"
    times = max(ratio, 1 / ratio)
    told = (
        f"Operators that both sides call alike ran {times:.2f} times {slower} in the new "
        "recording: the machine, its load, or another thread of the program changed. That is taken "
        "out of the interval."
    )
    reasons = (told, *(it for it in found.reasons if it not in _OF_INTERVAL))
    if found.interval is None:
        return Judgement("inconclusive", None, reasons, change)
    low, high = interval
    if change >= gate and low > 0:
        return Judgement("regression", interval, reasons, change)
    if change <= -gate and high < 0:
        return Judgement("improvement", interval, reasons, change)
    if -gate <= low and high <= gate:
        if found.outcome == "neutral":
            return Judgement("neutral", interval, reasons, change)
        return Judgement("inconclusive", interval, (_BY_MACHINE, *reasons), change)
    return Judgement("inconclusive", interval, (_WITHIN_MACHINE, *reasons), change)


def if_both(found: Judgement, on_one_machine: Judgement) -> Judgement:
    """Withdraw a change of timed steps that the speed of the machine may have made.

    The machine is compared while it records, the steps are timed before and after that.
    """
    if found.outcome == on_one_machine.outcome:
        return on_one_machine
    why = "The timed steps and unchanged operators leave it open whether the program changed."
    reasons = (why, *(it for it in on_one_machine.reasons if it not in _OF_INTERVAL))
    return replace(on_one_machine, outcome="inconclusive", reasons=reasons)


def judge_cost(
    found: Judgement,
    changes: tuple[float, float] | None,
    *,
    known: float,
    gate: float,
    is_estimated: bool,
) -> Judgement:
    """Withdraw a change that is not certain without the profiler.

    Parameters
    ----------
    found
        The judgement of the estimated steps.
    changes
        The smallest and the greatest change that the ranges of both steps without the profiler
        leave; None if the steps are known.
    known
        The part of the change that GPU work makes, whose times recording does not change.
    gate
        The smallest change that matters.
    is_estimated
        Whether the step without the profiler is estimated, on one side at least.
    """
    if changes is None or found.outcome not in {"regression", "improvement"}:
        return found
    if all(_agrees(each, found, gate) for each in changes):
        return found
    if _agrees(known, found, gate):
        told = (
            "The verdict holds regardless of the cost of recording: GPU activities changed, which "
            f"recording does not slow down, by {change(known)} of the step."
        )
        return replace(found, reasons=(told, *found.reasons))
    why = (
        "The change depends on what recording cost, which is estimated. Time a step of each side "
        "without the profiler, and give both times with --step-time."
        if is_estimated
        else "Steps that were timed without the profiler differ by as much as the sides. Give "
        "several runs of each side."
    )
    return Judgement("inconclusive", found.interval, (why, *found.reasons), found.change)


def _agrees(part: float, found: Judgement, gate: float) -> bool:
    """Whether a change is beyond the gate in the direction of a judgement."""
    return abs(part) >= gate and (part > 0) == (found.outcome == "regression")


def judge_step(others: Sequence[float], length_ns: float, gate: float) -> Judgement:
    """Compare one step with the other steps of its run."""
    if len(others) < FEWEST:
        are = "is" if len(others) == 1 else "are"
        few = f"{count(len(others), 'other step')} {are} too few to tell what is usual."
        return Judgement("inconclusive", None, (few,))
    change = length_ns / median(others) - 1
    ends = (length_ns / max(others) - 1, length_ns / min(others) - 1)
    where = f"The other {count(len(others), 'step')} differ by {_spread(others)} themselves."
    if abs(change) < gate:
        return Judgement("neutral", ends, (where, "It is within the gate of the median step."))
    if ends[0] > 0:
        return Judgement("regression", ends, (where, "It is longer than every other step."))
    if ends[1] < 0:
        return Judgement("improvement", ends, (where, "It is shorter than every other step."))
    return Judgement("neutral", ends, (where, "Other steps are as long."))


def _paired_limits(
    base: Mapping[int, float], new: Mapping[int, float]
) -> tuple[float, float] | None:
    """Return the limits of a step's median change; None if pairing steps reduces no spread."""
    if [*base] != [*new] or len(base) < _FEWEST_PAIRS:
        return None
    changes = [math.log(max(new[step], 1.0) / max(base[step], 1.0)) for step in base]
    logs = [[math.log(max(each, 1.0)) for each in side.values()] for side in (base, new)]
    apart = [robust_spread(each) for each in logs]
    if robust_spread(changes) > _PAIRED_BELOW * math.hypot(*apart):
        return None
    _, limits = median_limits(changes, _LEVEL)
    return None if limits is None else (math.expm1(limits.low), math.expm1(limits.high))


def _limits(base: Sequence[float], new: Sequence[float]) -> tuple[float, float] | None:
    logs = [[math.log(max(each, 1.0)) for each in side] for side in (base, new)]
    _, limits = shift_limits(logs[0], logs[1], _LEVEL)
    return None if limits is None else (math.expm1(limits.low), math.expm1(limits.high))


def _held(
    limits: tuple[float, float] | None,
    gate: float,
    change: float,
    told: tuple[str, ...],
    *,
    beyond: float,
) -> Judgement:
    """Compare an interval and the change of the mean with the gate."""
    if limits is None:
        return Judgement("inconclusive", None, ("There are too few for an interval.", *told))
    low, high = limits
    if -gate <= low and high <= gate:
        return Judgement("neutral", limits, (_WITHIN, *told))
    if low > beyond and change >= gate:
        return Judgement("regression", limits, told)
    if high < -beyond and change <= -gate:
        return Judgement("improvement", limits, told)
    why = _NOT_BEYOND if low > 0 or high < 0 else _OPEN
    return Judgement("inconclusive", limits, (why, *told))


def _spread(lengths: Sequence[float]) -> str:
    return f"{100 * (max(lengths) / min(lengths) - 1):.0f} %"


def moderated_t(base: Steps, new: Steps) -> Steps | None:
    """Return the difference of each row in standard errors of its steps.

    Parameters
    ----------
    base, new
        The time of each group of work (row) in each step (column).

    Returns
    -------
    array or None
        None with one step per side, which has no spread.
    """
    import numpy as np

    degrees = base.shape[1] + new.shape[1] - 2
    if degrees <= 0 or not base.size:
        return None
    means = base.mean(axis=1), new.mean(axis=1)
    size = np.maximum((means[0] + means[1]) / 2, 1.0)
    squares = [((side - side.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) for side in (base, new)]
    variance = (squares[0] + squares[1]) / degrees / size**2
    prior = float(np.median(variance))
    pooled = (_PRIOR_DEGREES * prior + degrees * variance) / (_PRIOR_DEGREES + degrees)
    spread = np.sqrt(np.maximum(pooled, _LEAST_SPREAD**2))
    error = spread * math.sqrt(1 / base.shape[1] + 1 / new.shape[1])
    found: Steps = (means[1] - means[0]) / size / error
    return found


def is_beyond_noise(t: float, n_steps: int, n_changes: int) -> bool:
    """Whether a difference in standard errors is significant among `n_changes` others.

    Examples
    --------
    >>> is_beyond_noise(9.0, 10, 20), is_beyond_noise(2.5, 10, 20)
    (True, False)
    """
    degrees = _PRIOR_DEGREES + n_steps - 2
    return abs(t) > _quantile(1 - _ANY_FALSE / 2 / max(n_changes, 1), degrees)


def _quantile(share: float, degrees: float) -> float:
    """Return the quantile of the t distribution (Fisher and Cornish, 1960)."""
    z = NormalDist().inv_cdf(share)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / degrees ** (power + 1) for power, term in enumerate(terms))
