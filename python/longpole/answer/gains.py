"""Formats gains as percentages, rounded according to their uncertainty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.words.wording import whole_percent

if TYPE_CHECKING:
    from longpole.remedies.parts import Side, VerdictParts

__all__ = ["MOST_WORDS", "Gains", "n_words"]

MOST_WORDS: Final = 60
"""Maximum number of words of the sentence, the actions and the caveat together."""

# Inferred gains are rounded to tens of percent.
_MUCH_INFERRED: Final = 0.2

# Bounds of a gain that are closer than this are shown as one number; a lower bound below the second
# value is not shown.
_WIDE: Final = 0.03
_LEAST_TOLD: Final = 0.01

# If the most by any cost of recording is this much above a gain, both are shown.
_MUCH_BELOW: Final = 0.15


class Gains:
    """The gains of the sides and remedies of one verdict, as text."""

    def __init__(self, parts: VerdictParts) -> None:
        self.sides = dict(parts["gains"])
        self._bounds = dict(parts["bounds"])
        self._of_cost = {side: bounds[:2] for side, bounds in parts["bounds_of_cost"]}
        self._is_inferred = parts["uncertainty"]["inferred"] > _MUCH_INFERRED

    def of_side(self, side: Side) -> str:
        """Return the gain of a side; as an interval if missing records leave it open."""
        low, high, *_ = self._bounds[side]
        most = self.most_of(side)
        if high - low < _WIDE:
            return self.told(side)
        if low < _LEAST_TOLD:
            return f"at most {self.percent(most)}"
        return f"at least {self.percent(low)}, at most {self.percent(most)}"

    def told(self, side: Side) -> str:
        """Return the upper bound of the gain of a side; with the gain if that is much smaller.

        This refers to bounds by the cost of recording, not to those by missing records.
        """
        gain, most, (low, _) = self.sides[side], self.most_of(side), self._of_cost[side]
        is_near = most - max(gain, self._bounds[side][1]) < _MUCH_BELOW
        if gain < _LEAST_TOLD or is_near or self._is_inferred:
            return self.most(most)
        span = f"{round(100 * low)} to {round(100 * most)} %"
        return f"about {self.percent(gain)} ({span}, as the cost of recording is uncertain)"

    def most_of(self, side: Side) -> float:
        """Return the upper bound of the gain of a side, for every cost of recording."""
        return max(self.sides[side], self._of_cost[side][1])

    def percent(self, gain: float) -> str:
        """Format a gain as a whole percentage, or in tens if it is inferred."""
        if gain <= 0:
            return "nothing"
        if self._is_inferred:
            return f"about {max(round(10 * gain), 1)}0 %"
        return whole_percent(gain)

    def most(self, gain: float) -> str:
        """Format a gain as an upper bound."""
        told = self.percent(gain)
        return told if told.startswith(("nothing", "less", "over")) else f"up to {told}"


def n_words(text: str) -> int:
    """Return the number of words and numbers of a text.

    Examples
    --------
    >>> n_words("saves up to 24 % (event 3)")
    6
    """
    return sum(any(map(str.isalnum, word)) for word in text.split())
