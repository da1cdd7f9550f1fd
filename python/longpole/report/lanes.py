"""Swim lanes as plain values: what ran where and when, for the canvas of a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Lane", "Lanes", "Segment"]


class Lane(TypedDict):
    """Events that follow one another; names and kinds are places in those of the lanes."""

    label: str
    is_inner: bool
    """Whether it belongs to the lane above, which has the label."""
    starts: list[int]
    """Each from the one before."""
    lengths: list[int]
    names: list[int]
    kinds: list[int]
    events: list[int]
    """Rows of `Trace.events`, each from the one before; empty where they are not known."""
    launchers: list[int]
    """Names of what launched them, as places plus 1, 0 if unknown; empty if none is known."""


class Segment(NamedTuple):
    """An event of a lane that the page offers to show, in words."""

    row: int
    place: int
    words: str


@dataclass(frozen=True, slots=True)
class Lanes:
    """Swim lanes on one axis of time."""

    label: str
    """What they show, in a sentence."""
    length_ns: int
    names: Sequence[str]
    kinds: Sequence[str]
    colors: Sequence[str]
    """The colour of each kind, as the style sheet names it."""
    legend: Sequence[tuple[str, str]]
    """Each colour once, with what it stands for."""
    rows: Sequence[Lane]
    longest: Sequence[Segment] = ()
    """The longest segment of each name on the critical path, in order of the time of the name."""
    has_path: bool = False
    """Whether the first lane is a critical path, which the page offers to walk along."""
    notes: Sequence[str] = ()
    """What the picture leaves out."""
    is_flame: bool = False
    """Whether a lane holds what is called in the lane above: a click zooms."""
