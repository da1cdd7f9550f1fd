"""What the base's verdict predicted for the remedies that the new side applied.

A remedy counts as applied if it fits the base and no longer fits the new side: there its certain
gain is at most a third of the former one, and the calls, launches or time that it removes are gone.
Otherwise, it only stopped gaining anything. A faster kernel counts only if no other remedy was
applied.

If it was applied in part: the length of the step is convex in the remaining part, so the gain is at
least the same part of the minimum gain.

Limits: the measured change is that of the whole step and includes all other differences.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from longpole.diffs.rewrites import has_signature
from longpole.diffs.values import Prediction
from longpole.remedies.catalogue import remedies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from longpole.answer import Verdict
    from longpole.answer.findings import Remedy
    from longpole.diffs.rewrites import Contents
    from longpole.diffs.values import Counts

# If this fraction of the certain gain remains, the rest of the remedy was applied.
_APPLIED: Final = 1 / 3

# If more than this fraction of the launches remains, they were not replaced.
_LAUNCHES_LEFT: Final = 0.5

# Allowance for noise: by this fraction of the step, the gain may exceed the prediction.
_BEYOND: Final = 0.05

# Intervals that are this fraction of the step apart still overlap.
_NOISE: Final = 0.01

# If little work corresponds, less than this part of the certain gain is another program. So is more
# than the possible gain, if there are no products that stayed.
_OF_LOW: Final = 0.75

# If the gain is more than this multiple of the prediction, it has another cause; smaller deviations
# are shown.
_MISSED: Final = 2


def predictions(
    base: Verdict,
    new: Verdict,
    measured: float | None,
    counts: Iterable[Counts] = (),
    *,
    contents: tuple[Contents, Contents] | None = None,
    is_rewritten: bool = False,
    left_out: frozenset[str] | None = frozenset(),
    is_gone: Callable[[Remedy], bool] = lambda _: True,
) -> tuple[Prediction, ...]:
    """List the remedies that the new side evidently applied, with their predictions.

    Parameters
    ----------
    base, new
        The verdicts on both sides.
    measured
        The gain of the mean step, as a fraction; None if unknown.
    counts
        What the mean steps of both sides contain.
    contents
        The kernels of both sides, which show the signature of a remedy.
    is_rewritten
        Whether little work corresponds, so that only a signature, and a gain as predicted, show
        that a remedy was applied.
    left_out
        Remedies whose evidence may be missing for another reason; None for all. Those of which
        the new side has the signature count nevertheless.
    is_gone
        Whether the new side lacks what a remedy changes.
    """
    if measured is None or "inconclusive" in {base.status, new.status}:
        return ()
    first: dict[str, Remedy] = {}
    unlisted: dict[str, Remedy] = {}
    for remedy in base.remedies:
        is_hidden = left_out is None or remedy.remedy in left_out
        if remedy.surely_saves and (not is_hidden or _is_signed(remedy, contents)):
            (first if remedy.is_listed else unlisted).setdefault(remedy.remedy, remedy)
    replacing = {one.id for one in remedies() if one.replaces_launches}
    has_launches = any(
        row.what == "launches" and row.new > _LAUNCHES_LEFT * row.base for row in counts
    )
    left = {row.remedy: max(row.gain.duration_ns, 0) for row in reversed(new.remedies)}

    def applied_of(rows: Iterable[Remedy]) -> list[tuple[Remedy, int]]:
        return [
            (row, left.get(row.remedy, 0))
            for row in rows
            if left.get(row.remedy, 0) <= _APPLIED * row.gain.duration_ns
            and not (row.remedy in replacing and has_launches)
            and _has_signature(row, contents, measured, is_rewritten=is_rewritten)
            and (_is_signed(row, contents) or row.remedy in replacing or is_gone(row))
        ]

    # A remedy outside the plan may be an alternative to a line of it, which then explains it.
    gone = filter(is_gone, unlisted.values())
    applied = applied_of(first.values()) or applied_of(gone)
    certain = [(row, left_ns) for row, left_ns in applied if row.effort != "kernel"]
    applied = certain or applied
    # Remedies that together predict much less than the gain are not its cause.
    highs = [_predicted(row, left_ns)[1] for row, left_ns in applied]
    if measured > _MISSED * sum(highs) + _BEYOND:
        return ()
    is_alone = len(applied) == 1
    return tuple(
        Prediction(
            row.remedy, row.gain.duration_ns, left_ns, *_predicted(row, left_ns), measured, is_alone
        )
        for row, left_ns in applied
    )


def compared(
    found: tuple[Prediction, ...], interval: tuple[float, float] | None
) -> tuple[Prediction, ...]:
    """Note whether the predictions came true: whether their interval and the measured one overlap.

    The gain of several remedies together is at least that of one and at most that of all.
    """
    if not found:
        return found
    if interval is None:
        interval = (-found[0].measured, -found[0].measured)
    low = min(row.gain_low for row in found)
    high = sum(row.gain_high for row in found)
    came_true = low <= -interval[0] + _NOISE and -interval[1] - _NOISE <= high
    return tuple(replace(row, came_true=came_true) for row in found)


def _is_signed(remedy: Remedy, contents: tuple[Contents, Contents] | None) -> bool:
    """Whether the new side has the signature of the remedy."""
    return contents is not None and has_signature(remedy.remedy, *contents) is True


def _has_signature(
    remedy: Remedy,
    contents: tuple[Contents, Contents] | None,
    measured: float,
    *,
    is_rewritten: bool,
) -> bool:
    """Whether the new side has the signature of the remedy, if there is one."""
    found = None if contents is None else has_signature(remedy.remedy, *contents)
    if is_rewritten:
        is_known = contents is None or contents[0].has_products
        most = 1.0 if is_known else remedy.gain.high + _BEYOND
        return found is True and _OF_LOW * remedy.gain.low <= measured <= most
    return found is not False


def _predicted(remedy: Remedy, left_ns: float) -> tuple[float, float]:
    """Return the gain of the applied part of a remedy."""
    part = 1 - left_ns / max(remedy.gain.duration_ns, 1)
    return part * remedy.gain.low, remedy.gain.high
