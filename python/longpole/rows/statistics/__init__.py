"""Statistics of samples: of one run in `samples`, of several runs in `ranks`."""

from __future__ import annotations

from typing import NamedTuple

from longpole.words.data import Row


class Ends(Row):
    """The ends of an interval."""

    low: float
    high: float


class Interval(NamedTuple):
    """An interval that contains a value with the requested confidence."""

    low: float
    high: float

    def __data__(self) -> Ends:
        """Return the ends by name."""
        return Ends(low=self.low, high=self.high)
