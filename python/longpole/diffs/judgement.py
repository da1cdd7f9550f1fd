"""Whether a change matters: exact rank intervals, compared with the smallest change that matters.

With several runs per side, each run contributes one number, as in `longpole bench compare`. With
one run per side, each step does: their spread is the noise within a run. The noise between runs is
often larger and then unknown. A change is certain if its whole interval lies beyond the gate and
beyond the spread of the steps.

A few steps do not show the spread of one kernel reliably. The variance of each kernel's steps is
therefore combined with that of all work of its kind, as in a moderated t-test (Smyth, "Linear
models and empirical Bayes methods", 2004). The error rate holds for all changes together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist, median
from typing import TYPE_CHECKING, Final

from longpole.diffs.samples import FEWEST
from longpole.words.wording import count, listing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from longpole.diffs.values import OpenBy, Outcome

    Steps = NDArray[np.float64]

Interval = tuple[float, float]

_BETWEEN_RUNS: Final = (
    "One run of each side does not show how much runs differ: give several runs of each side."
)
_OPEN: Final = {
    "cost": (
        "The change depends on what recording cost, which is estimated. Time a step of each side "
        "without the profiler, and give both times with --step-time."
    ),
    "machine": (
        "Operators that did not change ran at another speed in the new recording: the machine or "
        "its load may have made the change."
    ),
    "spread": "The change is not larger than the spread of the steps of one side.",
    "gate": "There is a change, but the interval does not lie beyond the gate.",
    "noise": "The interval contains both no change and a change beyond the gate.",
}
_WITHIN: Final = "The whole interval is within the gate."

# Weight of the variance of all work of a kind, as a number of further steps.
_PRIOR_DEGREES: Final = 4.0

# Probability that at least one of all reported changes is false.
_ANY_FALSE: Final = 0.05

# Clock resolution: a spread is at least this fraction of the time.
_LEAST_SPREAD: Final = 1e-4


@dataclass(frozen=True, slots=True)
class Intervals:
    """The change as an interval, from the whole one to one that takes least into account."""

    whole: Interval
    """At every recording cost, and at equal machine speed."""
    at_any_cost: Interval
    """At every recording cost."""
    as_estimated: Interval
    """With the most likely recording cost, or by the times that are known."""
    spread: float
    """Robust spread of the steps, or of the runs, of the side where it is greater."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, its interval, and the reason."""

    outcome: Outcome
    interval: tuple[float, float] | None
    reasons: tuple[str, ...]
    open_by: OpenBy | None = None
    """What leaves the verdict open."""


def judge(found: Intervals, gate: float, *, n_each: tuple[int, int], are_runs: bool) -> Judgement:
    """Compare the interval of a change with the gate and with the spread of the steps.

    Word, JSON and exit code follow from this one decision.
    """
    told = (
        f"{n_each[0]} and {count(n_each[1], 'run')}, each by its mean step."
        if are_runs
        else _BETWEEN_RUNS
    )
    outcome = _outcome(found.whole, gate, found.spread)
    if outcome == "neutral":
        return Judgement(outcome, found.whole, (_WITHIN, told))
    if outcome != "inconclusive":
        return Judgement(outcome, found.whole, (told,))
    open_by = _open_by(found, gate)
    return Judgement(outcome, found.whole, (_OPEN[open_by], told), open_by)


def too_few(numbers: Sequence[int], *, are_runs: bool) -> Judgement:
    """Return that there are too few steps or runs for an interval."""
    unit = "run" if are_runs else "step"
    known = f"{numbers[0]} and {count(numbers[1], unit)} are too few"
    told = "" if are_runs else " to separate a change from noise"
    few = f"{known}{told}: each side needs {FEWEST}."
    return Judgement("inconclusive", None, (few, *(() if are_runs else (_BETWEEN_RUNS,))), "noise")


def _outcome(interval: tuple[float, float], gate: float, spread: float) -> Outcome:
    """Return the verdict of an interval; a change lies beyond the gate and the spread of steps."""
    low, high = interval
    if -gate <= low and high <= gate:
        return "neutral"
    beyond = max(gate, spread)
    return "regression" if low > beyond else "improvement" if high < -beyond else "inconclusive"


def _open_by(found: Intervals, gate: float) -> OpenBy:
    """Return what a conclusive verdict lacks: the first part of the interval that is open."""
    if _outcome(found.as_estimated, gate, found.spread) != "inconclusive":
        at_any_cost = _outcome(found.at_any_cost, gate, found.spread)
        return "cost" if at_any_cost == "inconclusive" else "machine"
    low, high = found.whole
    if low <= 0 <= high:
        return "noise"
    return "spread" if min(abs(low), abs(high)) > gate else "gate"


def judge_step(
    others: Sequence[float], length_ns: float, gate: float, unusual: Sequence[int] = ()
) -> Judgement:
    """Compare one step with the usual ones of the other steps of its run."""
    if len(others) < FEWEST:
        are = "is" if len(others) == 1 else "are"
        few = f"{count(len(others), 'other step')} {are} too few to tell what is usual."
        return Judgement("inconclusive", None, (few,))
    change = length_ns / median(others) - 1
    ends = (length_ns / max(others) - 1, length_ns / min(others) - 1)
    where = f"The other {count(len(others), 'step')} differ by {_spread(others)} themselves."
    if unusual:
        left_out = listing([str(step) for step in unusual])
        steps = "step" if len(unusual) == 1 else "steps"
        where += f" Left out: {steps} {left_out}, over 1.5 times longer or shorter than the median."
    if abs(change) < gate:
        return Judgement("neutral", ends, (where, "It is within the gate of the median step."))
    if ends[0] > 0:
        return Judgement("regression", ends, (where, "It is longer than every other step."))
    if ends[1] < 0:
        return Judgement("improvement", ends, (where, "It is shorter than every other step."))
    return Judgement("neutral", ends, (where, "Other steps are as long."))


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
