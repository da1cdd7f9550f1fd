"""What one sample of a comparison is: a step or run, a cycle of steps, or a pair of these.

Steps may come in cycles: the optimizer runs every fourth step, or a loader is slow in every second
one. Steps of one cycle are not alike, but whole cycles are, so their means are compared. Steps of
both sides are compared in pairs if what they do depends on their number.

The choice is made once, for the steps as recorded. It must not change with the cost of recording
that is removed, or the interval would be as wide as the worst choice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, median, pstdev
from typing import TYPE_CHECKING, Final

from longpole.rows.statistics.ranks import median_limits, robust_spread, shift_limits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Lengths = Mapping[int, float]

FEWEST: Final = 4
"""Minimum number of runs or steps of each side."""

_LEVEL: Final = 0.05
_FEWEST_PAIRS: Final = 6

# Samples are paired if that reduces their spread to the first share. Steps are combined to cycles
# if that does to the second, unless pairs of steps do.
_PAIRED_BELOW: Final = 0.7
_CYCLE_BELOW: Final = 0.3

_LONGEST_CYCLE: Final = 4


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the steps or runs of both sides become samples."""

    cycle: int = 1
    """Number of steps that are one sample together."""
    is_paired: bool = False
    """Whether samples with the same number are compared with each other."""

    def of(self, lengths: Lengths) -> dict[int, float]:
        """Return the length of each sample; the first steps of an incomplete cycle are left out."""
        if self.cycle == 1:
            return dict(lengths)
        steps = sorted(lengths)
        first = len(steps) % self.cycle
        cycles = [steps[at : at + self.cycle] for at in range(first, len(steps), self.cycle)]
        return {steps[0]: fmean(lengths[step] for step in steps) for steps in cycles}

    def limits(self, base: Lengths, new: Lengths) -> tuple[float, float] | None:
        """Return the limits of the change of steps or runs; None if there are too few."""
        if min(len(base), len(new)) < FEWEST:
            return None
        base, new = self.of(base), self.of(new)
        _, limits = (
            median_limits(_changes(base, new), _LEVEL)
            if self.is_paired
            else shift_limits(_logs(base), _logs(new), _LEVEL)
        )
        return None if limits is None else (math.expm1(limits.low), math.expm1(limits.high))


def sampling_of(base: Lengths, new: Lengths, *, are_runs: bool = False) -> Sampling:
    """Choose what one sample is, by the lengths of steps or runs as recorded.

    Runs have no cycles.

    Examples
    --------
    >>> steps = {step: 100.0 + 50 * (step % 2) + step / 10 for step in range(10)}
    >>> sampling_of(steps, {step: 120.0 + step / 10 for step in range(10)})
    Sampling(cycle=2, is_paired=False)
    """
    if _are_pairs(base, new, _CYCLE_BELOW):
        return Sampling(is_paired=True)
    cycle = 1 if are_runs else _cycle(base, new)
    chosen = Sampling(cycle)
    samples = chosen.of(base), chosen.of(new)
    return Sampling(cycle, is_paired=_are_pairs(*samples, _PAIRED_BELOW))


def _cycle(base: Lengths, new: Lengths) -> int:
    """Return after how many steps the lengths of a side repeat; 1 if they do not."""
    fewest = min(len(base), len(new))
    for cycle in range(2, _LONGEST_CYCLE + 1):
        if fewest >= FEWEST * cycle and any(_repeats(side, cycle) for side in (base, new)):
            return cycle
    return 1


def _repeats(lengths: Lengths, cycle: int) -> bool:
    """Whether steps at one place of a cycle are much more alike than all steps."""
    steps = sorted(lengths)
    if steps[-1] - steps[0] != len(steps) - 1:
        return False
    logs = _logs(lengths)
    middles = [median(logs[place::cycle]) for place in range(cycle)]
    apart = [log - middles[number % cycle] for number, log in enumerate(logs)]
    return pstdev(apart) < _CYCLE_BELOW * pstdev(logs)


def _are_pairs(base: Lengths, new: Lengths, below: float) -> bool:
    """Whether comparing samples with the same number reduces their spread to a share."""
    if [*base] != [*new] or len(base) < _FEWEST_PAIRS:
        return False
    apart = [robust_spread(_logs(side)) for side in (base, new)]
    return robust_spread(_changes(base, new)) <= below * math.hypot(*apart)


def _changes(base: Lengths, new: Lengths) -> Sequence[float]:
    return [math.log(max(new[step], 1.0) / max(base[step], 1.0)) for step in base]


def _logs(lengths: Lengths) -> list[float]:
    return [math.log(max(lengths[step], 1.0)) for step in sorted(lengths)]
