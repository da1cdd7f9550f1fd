"""Whether a change matters: exact rank intervals, compared with the smallest relevant change.

With several runs per side, each run contributes one number, as in `longpole bench compare`. With
one run per side, each step does: their spread is the noise within a run. The noise between runs is
often larger and then unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from longpole.statistics.ranks import median_limits, robust_spread, shift_limits
from longpole.wording import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.analyses.diff.values import Outcome

__all__ = ["FEWEST", "Judgement", "judge_runs", "judge_step", "judge_steps"]

_LEVEL: Final = 0.05
FEWEST: Final = 4
"""Minimum number of runs or steps of each side."""
_FEWEST_PAIRS: Final = 6

# Steps are paired if that reduces their spread to this share.
_PAIRED_BELOW: Final = 0.7

_BETWEEN_RUNS: Final = (
    "One run of each side does not show how much runs differ: the interval covers only the steps "
    "of these two runs. Give several runs of each side."
)


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
    base: Mapping[int, float], new: Mapping[int, float], gate: float, *, change: float
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
    return _held(limits, gate, change, (_BETWEEN_RUNS,), beyond=0.0)


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
        f"The machine or its load changed: operators that both sides call alike ran {times:.2f} "
        f"times {slower} in the new recording. That is taken out of the interval."
    )
    reasons = (told, *found.reasons)
    if found.interval is None:
        return Judgement("inconclusive", None, reasons, change)
    low, high = interval
    if change >= gate and low > 0:
        return Judgement("regression", interval, reasons, change)
    if change <= -gate and high < 0:
        return Judgement("improvement", interval, reasons, change)
    if -gate <= low and high <= gate:
        return Judgement("neutral", interval, reasons, change)
    why = "What is left of the change is within what the machine may have done."
    return Judgement("inconclusive", interval, (why, *reasons), change)


def judge_step(others: Sequence[float], length_ns: float, gate: float) -> Judgement:
    """Compare one step with the other steps of its run."""
    if len(others) < FEWEST:
        few = f"{count(len(others), 'other step')} are too few to tell what is usual."
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
    """Return the limits of a step's median change if the same steps vary on both sides."""
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
        return Judgement("neutral", limits, ("The whole interval is within the gate.", *told))
    if low > beyond and change >= gate:
        return Judgement("regression", limits, told)
    if high < -beyond and change <= -gate:
        return Judgement("improvement", limits, told)
    if low > 0 or high < 0:
        why = "There is a change, but the interval does not lie beyond the gate."
    else:
        why = "The interval contains both no change and a change beyond the gate."
    return Judgement("inconclusive", limits, (why, *told))


def _spread(lengths: Sequence[float]) -> str:
    return f"{100 * (max(lengths) / min(lengths) - 1):.0f} %"
