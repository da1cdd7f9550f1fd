"""How long work waited for a processor, as Linux counts it (pressure stall information)."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["Pressure"]

_COUNTER: Final = Path("/proc/pressure/cpu")


class Pressure:
    """The share of the time since it was made in which something waited for a processor.

    All programs of the machine count, ours among them.

    Examples
    --------
    >>> share = Pressure().share()
    >>> share is None or 0 <= share <= 1
    True
    """

    def __init__(self) -> None:
        self._begin = time.monotonic(), _waited_s()

    def share(self) -> float | None:
        """Give the share; None where the system does not count it."""
        passed_s = time.monotonic() - self._begin[0]
        before, now = self._begin[1], _waited_s()
        if before is None or now is None or passed_s <= 0:
            return None
        return min(1.0, max(0.0, (now - before) / passed_s))


def _waited_s() -> float | None:
    with suppress(OSError, ValueError, IndexError):
        line = _COUNTER.read_text(encoding="ascii").splitlines()[0]
        return int(line.rpartition("total=")[2]) / 1e6
    return None
