"""What a page shows first, as plain values: tiles, stacked bars, columns and intervals of gains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.report.blocks import Bar

__all__ = ["Columns", "Interval", "Intervals", "Stack", "Tile", "Tiles"]


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure with its label."""

    label: str
    value: str
    notes: Sequence[str] = ()
    """What the figure rests on, a line each."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """The figures that a page begins with; one that is not known has no tile."""

    tiles: Sequence[Tile]


@dataclass(frozen=True, slots=True)
class Stack:
    """One bar that is divided into the parts of a whole."""

    label: str
    bars: Sequence[Bar]
    """The parts, from left to right; their shares sum to 1."""
    length: float = 1.0
    """Length as a share of the longest bar that is drawn with it."""
    amount: str = ""
    """What the whole is."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Upright bars on one axis, each divided into the parts of a whole."""

    label: str
    columns: Sequence[Stack]
    chosen: str | None = None
    """The label of the column that the page is about."""
    notes: Sequence[str] = ()
    """What the picture leaves out."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Something to change, with the least and the greatest share that it saves."""

    text: str
    low: float
    high: float
    words: str
    """What it saves, as the verdict words it."""
    event: int | None = None
    """The event that shows it best."""
    time_range: tuple[int, int] | None = None
    """Where the timeline shows it, if it does not draw the event: start and length in ns."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """Gains as bars on one axis from 0 to 100 %."""

    rows: Sequence[Interval]
