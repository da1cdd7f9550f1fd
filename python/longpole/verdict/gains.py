"""Gains in words: shares, rounded as coarsely as they are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from longpole.remedies.parts import BoundsParts, Side, VerdictParts

__all__ = ["MOST_WORDS", "Gains", "n_words"]

MOST_WORDS: Final = 60
"""The sentence, what to do and the caveat have so many words together."""

# Gains that rest on inference are given in whole tens.
_MUCH_INFERRED: Final = 0.2

# Bounds of a gain that are closer to each other are one number, and less than this at least is
# nothing to build on.
_WIDE: Final = 0.03
_LEAST_TOLD: Final = 0.01


class Gains:
    """What sides and remedies of one verdict gain, in words."""

    def __init__(self, parts: VerdictParts) -> None:
        self.sides = dict(parts["gains"])
        self._bounds = dict(parts["bounds"])
        self._is_inferred = parts["doubt"]["inferred"] > _MUCH_INFERRED

    def of_side(self, side: Side) -> str:
        """Say what a side gains: between two bounds where missing records leave it open."""
        return self._between(self.sides[side], self._bounds[side])

    def _between(self, gain: float, bounds: BoundsParts) -> str:
        low, high, *_ = bounds
        if high - low < _WIDE:
            return self.most(max(gain, high))
        if low < _LEAST_TOLD:
            return f"at most {self.percent(high)}"
        return f"at least {self.percent(low)}, at most {self.percent(high)}"

    def percent(self, gain: float) -> str:
        """Write a gain as a whole per cent, or as whole tens where it is inferred."""
        if gain <= 0:
            return "nothing"
        if self._is_inferred:
            return f"about {max(round(10 * gain), 1)}0 %"
        return f"{100 * gain:.0f} %" if gain >= 0.005 else "less than 1 %"  # noqa: PLR2004

    def most(self, gain: float) -> str:
        """Write a gain as an upper bound."""
        told = self.percent(gain)
        return told if told.startswith(("nothing", "less")) else f"up to {told}"


def n_words(text: str) -> int:
    """Count the words and numbers of a text.

    Examples
    --------
    >>> n_words("saves up to 24 % (event 3)")
    6
    """
    return sum(any(map(str.isalnum, word)) for word in text.split())
