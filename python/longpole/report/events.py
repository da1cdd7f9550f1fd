"""Links from the events that an answer names to where a page shows them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.report.blocks import Entry, Notes, Sentence, Table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from longpole.report.blocks import Block

__all__ = ["EventLinks", "events_of"]

_EVENT: Final = re.compile(r"\b[Ee]vent (\d{1,12})\b")


@dataclass(frozen=True, slots=True)
class EventLinks:
    """The events of one trace that a page has a row of."""

    prefix: str
    """What the names of places on the page begin with, among several traces."""
    events: Collection[int]

    def place(self, event: int) -> str:
        """Return the name of the place on the page that shows an event."""
        return f"{self.prefix}event-{event}"

    def link(self, event: int, words: str) -> str:
        """Return words, which are HTML, as a link to an event if the page shows it."""
        return f'<a href="#{self.place(event)}">{words}</a>' if event in self.events else words

    def linked(self, text: str) -> str:
        """Link the events that an HTML text names.

        Examples
        --------
        >>> EventLinks("", {7}).linked("saves 24 % (event 7), event 8")
        'saves 24 % (<a href="#event-7">event 7</a>), event 8'
        """
        return _EVENT.sub(lambda match: self.link(int(match[1]), match[0]), text)


def events_of(block: Block) -> Iterator[int]:
    """Return the events that a block names, in the order in which it names them.

    Examples
    --------
    >>> list(events_of(Sentence("saves 24 % (event 7)")))
    [7]
    """
    match block:
        case Table(columns, rows):
            places = [at for at, column in enumerate(columns) if column.type == "event"]
            values = (row[at] for row in rows for at in places)
            yield from (int(value) for value in values if value is not None)
        case Sentence(text):
            yield from _events_in(text)
        case Notes(items, _):
            yield from _events_in(*items)
        case Entry(_, _, title, sentences):
            yield from _events_in(title, *sentences)
        case _:
            return


def _events_in(*texts: str) -> Iterator[int]:
    return (int(number) for text in texts for number in _EVENT.findall(text))
