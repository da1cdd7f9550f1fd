"""Whether the processor was slowed down because it was too hot, as Linux counts it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["ThermalEvents"]

# Of the whole package, whichever core a program runs on. Virtual machines have none.
_COUNTER: Final = Path("/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count")


class ThermalEvents:
    """Tells of new events each time it is asked; none where they are not counted.

    Parameters
    ----------
    counter
        The file with their number.

    Examples
    --------
    >>> ThermalEvents(Path("/nonexistent")).any_new()
    False
    """

    def __init__(self, counter: Path = _COUNTER) -> None:
        self._counter = counter
        self._seen = self._count()

    def any_new(self) -> bool:
        """Say whether there were some since the last time."""
        if self._seen is None:
            return False
        before, self._seen = self._seen, self._count()
        return self._seen is not None and self._seen > before

    def _count(self) -> int | None:
        with suppress(OSError, ValueError):
            return int(self._counter.read_text(encoding="ascii"))
        return None
