"""Formats gains as percentages, rounded according to their uncertainty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.remedies.gains import WORTH_SAYING
from longpole.words.wording import whole_percent

if TYPE_CHECKING:
    from longpole.remedies.gains import Gain
    from longpole.remedies.parts import VerdictParts
    from longpole.remedies.sides import Side

MOST_WORDS: Final = 60
"""Maximum number of words of the sentence, the actions and the caveat together."""

# Inferred gains are rounded to tens of percent.
_MUCH_INFERRED: Final = 0.2

# Bounds of a gain that are closer than this are shown as one number.
_WIDE: Final = 0.03

# If the most by any cost of recording is this much above a gain, both are shown.
_MUCH_BELOW: Final = 0.15

# A gain of all is said as one of nearly all: some time of a device always remains.
_NEARLY_ALL: Final = 0.999

# What determines a bound if nothing is missing from the trace.
_OF_RECORDING: Final = frozenset(("recorded", "recording_cost"))


class Gains:
    """The gains of the sides and remedies of one verdict, as text."""

    def __init__(self, parts: VerdictParts) -> None:
        self.sides = parts["gains"]
        self._is_inferred = parts["uncertainty"]["inferred"] > _MUCH_INFERRED

    def of_side(self, side: Side) -> str:
        """Return the gain of a side; as an interval if missing records leave it open."""
        gain = self.sides[side]
        if gain.high - gain.low < _WIDE or {gain.low_by, gain.high_by} <= _OF_RECORDING:
            return self.told(side)
        most = f"at most {self.percent(gain.high)}"
        return most if gain.low < WORTH_SAYING else f"at least {self.percent(gain.low)}, {most}"

    def told(self, side: Side) -> str:
        """Return the upper bound of the gain of a side; an interval if the gain is much smaller."""
        gain = self.sides[side]
        if gain.value < WORTH_SAYING or not _is_far(gain) or self._is_inferred:
            return self.most(gain.high)
        span = f"{round(100 * gain.low)} to {round(100 * gain.high)} %"
        return f"{span}, depending on the cost of recording"

    def percent(self, gain: float) -> str:
        """Format a gain as a whole percentage, or in tens if it is inferred."""
        if gain <= 0:
            return "nothing"
        if self._is_inferred:
            return f"about {max(round(10 * gain), 1)}0 %"
        return whole_percent(min(gain, _NEARLY_ALL))

    def most(self, gain: float) -> str:
        """Format a gain as an upper bound."""
        told = self.percent(gain)
        return told if told.startswith(("nothing", "less", "over")) else f"up to {told}"


def _is_far(gain: Gain) -> bool:
    """Whether the cost of recording sets an upper bound far above the gain."""
    return gain.high_by == "recording_cost" and gain.high - gain.value >= _MUCH_BELOW


def n_words(text: str) -> int:
    """Return the number of words and numbers of a text.

    Examples
    --------
    >>> n_words("saves up to 24 % (event 3)")
    6
    """
    return sum(any(map(str.isalnum, word)) for word in text.split())
