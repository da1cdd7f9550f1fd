"""Lines at the bottom of a terminal that are redrawn in place."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Live", "bar", "is_watched"]

_LEAST_INTERVAL_S: Final = 0.1
_WIDTH: Final = 80
_BAR_CHARACTERS: Final = 30


def is_watched() -> bool:
    """Whether stderr is a terminal, so that a user sees redrawn lines."""
    return sys.stderr.isatty() and not os.environ.get("CI")


def bar(share: float) -> str:
    """Return a progress bar.

    Examples
    --------
    >>> bar(0.5)
    '[===============               ]'
    """
    done = "=" * round(min(share, 1) * _BAR_CHARACTERS)
    return f"[{done:<{_BAR_CHARACTERS}}]"


class Live:
    """Shows lines on stderr until the next ones are shown."""

    def __init__(self) -> None:
        self._n_lines = 0
        self._drawn_s = float("-inf")

    def show(self, lines: Sequence[str]) -> None:
        """Replace the previous lines by these; does nothing if called again too soon."""
        now_s = time.monotonic()
        if now_s - self._drawn_s < _LEAST_INTERVAL_S:
            return
        self._drawn_s = now_s
        width = shutil.get_terminal_size((_WIDTH, 24)).columns
        drawn = "".join(f"{line[: width - 1]}\n" for line in lines)
        sys.stderr.write(self._erased() + drawn)
        sys.stderr.flush()
        self._n_lines = len(lines)

    def write_above(self, text: str) -> None:
        """Write permanent text above the lines."""
        sys.stderr.write(self._erased() + text)
        self._n_lines = 0
        self._drawn_s = float("-inf")

    def clear(self) -> None:
        """Remove the lines."""
        sys.stderr.write(self._erased())
        sys.stderr.flush()
        self._n_lines = 0

    def _erased(self) -> str:
        return f"\x1b[{self._n_lines}A\x1b[J" if self._n_lines else ""
