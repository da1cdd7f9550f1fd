"""Statistics of samples: of one run in `samples`, of several runs in `ranks`."""

from __future__ import annotations

from typing import Final, NamedTuple

from longpole.words.data import Row

_SHORT_NS: Final = 1_000


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


def rounded_ns(time_ns: float) -> float:
    """Round a time to whole nanoseconds; one below a microsecond to thousandths of them.

    Examples
    --------
    >>> rounded_ns(3682457.9999999995), rounded_ns(12.345678)
    (3682458, 12.346)
    """
    return round(time_ns) if time_ns >= _SHORT_NS else round(time_ns, 3)
