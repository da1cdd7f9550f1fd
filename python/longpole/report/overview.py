"""The first part of a page as plain values: tiles, stacked bars, columns and intervals of gains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.report.blocks import Bar


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure with its label."""

    label: str
    value: str
    notes: Sequence[str] = ()
    """What the number is based on, one line each."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """The key figures at the top of a page; unknown figures have no tile."""

    tiles: Sequence[Tile]


@dataclass(frozen=True, slots=True)
class Stack:
    """A bar that is divided into the parts of a whole."""

    label: str
    bars: Sequence[Bar]
    """The parts, from left to right; their shares sum to 1."""
    length: float = 1.0
    """Length as a fraction of the longest bar in the same picture."""
    amount: str = ""
    """Length of the whole, as text."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Upright bars on one axis, each divided into the parts of a whole."""

    label: str
    columns: Sequence[Stack]
    chosen: str | None = None
    """Label of the column for the window of the page."""
    notes: Sequence[str] = ()
    """Notes on what the picture leaves out."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A remedy, with the smallest and the largest share of time that it saves."""

    text: str
    low: float
    high: float
    words: str
    """The saving, as worded in the verdict."""
    event: int | None = None
    """The event that is the best example."""
    time_range: tuple[int, int] | None = None
    """Start and length in ns of a part of the timeline to show if it does not draw the event."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """Gains as bars on one axis from 0 to 100 %."""

    rows: Sequence[Interval]
