"""Gains: how much shorter changes make the windows of a verdict.

The core makes every gain from changes, with its bounds; nothing else bounds one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from longpole._core import extended_bounds
from longpole.engine.critical_path.changes import parts_of
from longpole.remedies.sides import Fact, Side
from longpole.words.data import HIDDEN, Data

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole._core import Facts as CoreFacts
    from longpole.engine.critical_path.changes import Change
    from longpole.remedies.sides import GainParts

WORTH_SAYING: Final = 0.02
"""A gain below this share of the window is not worth saying."""


UNMEASURED: Final = (0.5, 1.3)
"""A mechanism whose effect was not measured saves this many times what is computed."""

MEASURED: Final = 1.045
"""Of four programs of `evidence.jsonl`, three saved at most this many times the computed upper
bound, as odds: what is saved to what is left. Computed lower bounds held in nine of ten."""


@dataclass(frozen=True, slots=True)
class Saving(Data):
    """What a line of a plan saves after those before it, as shares of the mean step."""

    low: float
    value: float
    high: float


@dataclass(frozen=True, slots=True, init=False)
class Gain(Data):
    """How much shorter the mean window becomes, as an interval of shares.

    The core computes it; there is no other way to make one.
    """

    value: float
    """The gain of the changes that are certain to be possible; negative for a loss."""
    low: float
    """Lower bound."""
    high: float
    """Upper bound, with the changes that may be possible."""
    low_by: Fact
    """What determines the lower bound."""
    high_by: Fact
    """What determines the upper bound."""
    duration_ns: int
    """The value as a time of the mean window, rounded down."""
    sides: tuple[Side, ...] = field(metadata=HIDDEN)
    """What the changes shorten."""

    def __init__(self) -> None:
        message = "gains are computed: see `Trace.gain`"
        raise TypeError(message)


def gains_of(
    core: CoreFacts, possible: Sequence[tuple[Sequence[Change], Sequence[Change]]]
) -> list[Gain]:
    """Compute the gain of each pair of certain and possible changes.

    The possible ones replace the certain ones; empty if there are no others.
    """
    sets = [
        ([*map(parts_of, careful)], [*map(parts_of, hopeful)] if hopeful else None)
        for careful, hopeful in possible
    ]
    return [*map(_gain, core.gains(sets))] if sets else []


def values_of(core: CoreFacts, sets: Sequence[Sequence[Change]]) -> list[float]:
    """Compute the gain of each set of certain changes at the estimated cost, without bounds."""
    return core.values([[*map(parts_of, changes)] for changes in sets]) if sets else []


def gains_of_sides(core: CoreFacts) -> dict[Side, Gain]:
    """Compute what removing each side gains."""
    return {side: _gain(parts) for side, parts in core.gains_of_sides()}


def gains_after(core: CoreFacts, changes: Sequence[Change]) -> dict[Side, float]:
    """Compute how much shorter what changes leave becomes without each side of work."""
    return dict(core.gains_after([*map(parts_of, changes)]))


def hull(gains: Mapping[Side, Gain], others: Mapping[Side, Gain]) -> dict[Side, Gain]:
    """Extend each gain to that of the same side with another cost of recording."""
    return {side: extended(gain, others[side]) for side, gain in gains.items()}


def extended(gain: Gain, other: Gain) -> Gain:
    """Extend the bounds of a gain to those that it has with another cost of recording."""
    own, more = ((it.low, it.high, it.low_by, it.high_by) for it in (gain, other))
    return _gain((gain.duration_ns, gain.value, extended_bounds(own, more), [*gain.sides]))


def unmeasured(gain: Gain, own: float, most: float = 1.0) -> Gain:
    """Widen a gain, of which `own` is what a mechanism saves whose effect was not measured.

    It is the same part of the lower bound as of the gain. No upper bound exceeds `most`.
    """
    part = min(own / gain.value, 1.0) if gain.value > 0 else 1.0
    low, high = widened(gain.low, gain.high, own, part, most)
    bounds = (low, high, gain.low_by, gain.high_by)
    return _gain((gain.duration_ns, gain.value, bounds, [*gain.sides]))


def widened(
    low: float, high: float, own: float, part: float = 1.0, most: float = 1.0
) -> tuple[float, float]:
    """Return bounds with the range of a mechanism that was not measured.

    `own` is what it saves, and `part` its part of the lower bound.
    """
    least, greatest = UNMEASURED
    own, part = max(own, 0.0), max(part, 0.0)
    wider = min(high + (greatest - 1) * own, most)
    return min(low, low * (1 - (1 - least) * part)), max(wider, high)


def measured(gain: Gain, most: float = 1.0) -> Gain:
    """Extend a gain of a measured mechanism by what measured programs saved beyond upper bounds.

    The upper bound does not exceed `most` through it.
    """
    bounds = (gain.low, beyond(gain.high, most), gain.low_by, gain.high_by)
    return _gain((gain.duration_ns, gain.value, bounds, [*gain.sides]))


def beyond(high: float, most: float = 1.0) -> float:
    """Return an upper bound, extended by what measured programs saved beyond theirs.

    Examples
    --------
    >>> [round(beyond(high), 3) for high in (0.0, 0.4, 0.9, 1.0)]
    [0.0, 0.411, 0.904, 1.0]
    """
    if not 0 < high < 1:
        return high
    odds = MEASURED * high / (1 - high)
    return max(high, min(odds / (1 + odds), most))


def _gain(parts: GainParts) -> Gain:
    duration_ns, value, (low, high, low_by, high_by), sides = parts
    made = object.__new__(Gain)
    given = {"value": value, "low": low, "high": high, "low_by": low_by, "high_by": high_by}
    for name, part in {**given, "duration_ns": duration_ns, "sides": tuple(sides)}.items():
        object.__setattr__(made, name, part)
    return made
