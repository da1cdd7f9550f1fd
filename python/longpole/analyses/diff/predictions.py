"""What the verdict on the base predicted of the remedies that the new side applied.

A remedy counts as applied where it fits the base and no longer fits the new side: it would surely
save at most a third of what it did.

Where a part of it was applied, the length of the step is convex in what remains, so that the gain
is at least that part of the least gain.

Limits: the measured change is that of the whole step. Whatever else differs is in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.analyses.diff.values import Prediction

if TYPE_CHECKING:
    from longpole.verdict import Verdict
    from longpole.verdict.findings import Remedy

__all__ = ["predictions"]

# What surely saves this share of what it did was applied, for the rest of it.
_APPLIED: Final = 1 / 3

# A remedy that surely saves less of a step is not worth a prediction.
_LEAST: Final = 0.02

# Nor is one that those listed before it make pointless.
_LEAST_THEN: Final = 0.01

# Noise: a gain beyond what was promised, as a share of the step.
_BEYOND: Final = 0.05

# A gain of more than so many times what was promised has another cause; a smaller miss is shown.
_MISSED: Final = 2


def predictions(base: Verdict, new: Verdict, measured: float | None) -> tuple[Prediction, ...]:
    """List the remedies that the new side evidently applied, with what was predicted of each.

    Parameters
    ----------
    base, new
        The verdicts on both sides.
    measured
        The gain of the mean step, as a share; None where it is not known.
    """
    if measured is None or "inconclusive" in {base.status, new.status}:
        return ()
    first: dict[str, Remedy] = {}
    for remedy in base.remedies:
        if remedy.gain_low >= _LEAST and remedy.gain_then >= _LEAST_THEN:
            first.setdefault(remedy.remedy, remedy)
    left = {row.remedy: max(row.gain_ns, 0) for row in reversed(new.remedies)}
    applied = [
        (row, left.get(row.remedy, 0))
        for row in first.values()
        if left.get(row.remedy, 0) <= _APPLIED * row.gain_ns
    ]
    # Remedies that together promised much less than was gained are not what was done.
    highs = [_predicted(row, left_ns)[1] for row, left_ns in applied]
    if measured > _MISSED * sum(highs) + _BEYOND:
        return ()
    is_alone = len(applied) == 1
    return tuple(
        Prediction(row.remedy, row.gain_ns, left_ns, *_predicted(row, left_ns), measured, is_alone)
        for row, left_ns in applied
    )


def _predicted(remedy: Remedy, left_ns: float) -> tuple[float, float]:
    """Return the gain of as much of a remedy as was applied."""
    part = 1 - left_ns / max(remedy.gain_ns, 1)
    return part * remedy.gain_low, remedy.gain_high
