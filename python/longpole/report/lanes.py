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
    """The longest segments of the critical path, in order of their length."""
    notes: Sequence[str] = ()
    """What the picture leaves out."""
    is_flame: bool = False
    """Whether a lane holds what is called in the lane above: a click zooms."""
