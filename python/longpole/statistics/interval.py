"""Where something lies."""

from __future__ import annotations

from typing import NamedTuple

from longpole.data import Row

__all__ = ["Interval"]


class Ends(Row):
    """Both ends of an interval."""

    low: float
    high: float


class Interval(NamedTuple):
    """Between which two values something lies, at the confidence that was asked for."""

    low: float
    high: float

    def __data__(self) -> Ends:
        """Give both ends by name."""
        return Ends(low=self.low, high=self.high)
