"""Linux counters of the processor: time waited for a processor, and thermal events."""

from __future__ import annotations

import time

from longpole.bench.run.sampler import THERMAL, thermal_events, waited_us

__all__ = ["Pressure", "ThermalEvents"]


class Pressure:
    """Fraction of the time since creation in which something waited for a processor.

    All programs of the machine count, including ours (pressure stall information).

    Examples
    --------
    >>> share = Pressure().share()
    >>> share is None or 0 <= share <= 1
    True
    """

    def __init__(self) -> None:
        self._begin = time.monotonic(), waited_us()

    def share(self) -> float | None:
        """Return the fraction; None if the system does not count it."""
        passed_s = time.monotonic() - self._begin[0]
        before, now = self._begin[1], waited_us()
        if before is None or now is None or passed_s <= 0:
            return None
        return min(1.0, max(0.0, (now / 1e6 - before / 1e6) / passed_s))


class ThermalEvents:
    """Reports new events on each query; none if they are not counted.

    Parameters
    ----------
    counter
        The file with the count.

    Examples
    --------
    >>> ThermalEvents("/nonexistent").any_new()
    False
    """

    def __init__(self, counter: str = THERMAL) -> None:
        self._counter = counter
        self._seen = thermal_events(counter)

    def any_new(self) -> bool:
        """Whether there were new events since the last query."""
        if self._seen is None:
            return False
        before, self._seen = self._seen, thermal_events(self._counter)
        return self._seen is not None and self._seen > before
