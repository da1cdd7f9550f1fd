"""What a page consists of: sections of blocks, swim lanes and further sections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

from longpole.report.lanes import Lanes, events_of
from longpole.report.overview import Columns, Intervals, Stack, Tiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from longpole.report.blocks import Block
    from longpole.report.lanes import EventLinks

__all__ = ["Page", "Part", "Section", "events_in"]


@dataclass(frozen=True, slots=True)
class Section:
    """One question and its answer."""

    key: str
    """Names the section in links; letters, digits and dashes."""
    title: str
    """Empty where the parts bring their own."""
    parts: Sequence[Part]
    is_folded: bool = False
    """Whether it is shown by its title until it is opened."""
    note: str = ""
    """Follows the title of a folded section."""
    is_open: bool = False
    """Whether a folded section is open at first."""
    links: EventLinks | None = None
    """The events that it links to, and those within it that have no links of their own."""


Part = Union["Block", Lanes, Tiles, Stack, Columns, Intervals, Section]
"""What a section consists of."""


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report; the navigation links to its sections, not to those within them."""

    title: str
    facts: Sequence[str]
    sections: Sequence[Section]
    links: Sequence[tuple[str, str]] = ()
    """Words and addresses, below the facts."""


def events_in(parts: Iterable[Part]) -> Iterator[int]:
    """Return the events that some parts name, in the order in which they name them."""
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
