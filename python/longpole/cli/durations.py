"""Durations as they are printed."""

from __future__ import annotations

from typing import Final

__all__ = ["duration_text"]

_UNITS: Final = ((1e9, "s"), (1e6, "ms"), (1e3, "us"))


def duration_text(duration_ns: float) -> str:
    """Write a duration in the unit that suits it.

    Examples
    --------
    >>> duration_text(98_342.0), duration_text(17.26), duration_text(2.5e9)
    ('98.34 us', '17.26 ns', '2.5 s')
    """
    for size_ns, unit in _UNITS:
        if duration_ns >= size_ns:
            return f"{duration_ns / size_ns:.4g} {unit}"
    return f"{duration_ns:.4g} ns"
