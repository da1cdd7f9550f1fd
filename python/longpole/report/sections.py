"""The structure of a page: sections of blocks, swim lanes and further sections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

from longpole.report.lanes import Lanes, events_of
from longpole.report.overview import Columns, Intervals, Stack, Tiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from longpole.report.blocks import Block
    from longpole.report.lanes import EventLinks


@dataclass(frozen=True, slots=True)
class Section:
    """One question and its answer."""

    key: str
    """Link target of the section; letters, digits and dashes."""
    title: str
    """Empty if the parts have their own titles."""
    parts: Sequence[Part]
    is_folded: bool = False
    """Whether only its title is shown until the reader expands it."""
    note: str = ""
    """Text after the title of a collapsed section."""
    is_open: bool = False
    """Whether a collapsible section is expanded at first."""
    links: EventLinks | None = None
    """The events to link to, in this section and in subsections without links of their own."""


Part = Union["Block", Lanes, Tiles, Stack, Columns, Intervals, Section]
"""A part of a section."""


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report; the navigation links to its sections, not to subsections."""

    title: str
    facts: Sequence[str]
    sections: Sequence[Section]
    links: Sequence[tuple[str, str]] = ()
    """Texts and addresses of links, below the facts."""


def events_in(parts: Iterable[Part]) -> Iterator[int]:
    """Yield the events that the given parts mention, in order."""
    for part in parts:
        match part:
            case Section():
                yield from events_in(part.parts)
            case Intervals(rows):
                yield from (row.event for row in rows if row.event is not None)
            case Lanes() | Tiles() | Stack() | Columns():
                pass
            case _:
                yield from events_of(part)
