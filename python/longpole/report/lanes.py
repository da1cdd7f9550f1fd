"""Swim lanes as plain values: what ran where and when, for the canvas of a page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

from longpole.report.blocks import Entry, Notes, Sentence, Table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from longpole.report.blocks import Block


class Lane(TypedDict):
    """Consecutive events; names and kinds are indices into those of `Lanes`."""

    label: str
    is_inner: bool
    """Whether it belongs to the lane above, which has the label."""
    starts: list[int]
    """Start of each event, as the difference from the previous one."""
    lengths: list[int]
    names: list[int]
    kinds: list[int]
    events: list[int]
    """Rows of `Trace.events`, as differences from the previous one; empty if unknown."""
    launchers: list[int]
    """Names of what launched them, as indices plus 1, 0 if unknown; empty if none is known."""


class Segment(NamedTuple):
    """An event of a lane that the page can show on request, with its description."""

    row: int
    place: int
    words: str


@dataclass(frozen=True, slots=True)
class Lanes:
    """Swim lanes on a common time axis."""

    label: str
    """Description of the picture, as a sentence."""
    length_ns: int
    names: Sequence[str]
    kinds: Sequence[str]
    colors: Sequence[str]
    """Colour of each kind, by its name in the style sheet."""
    legend: Sequence[tuple[str, str]]
    """Each colour once, with its meaning."""
    rows: Sequence[Lane]
    longest: Sequence[Segment] = ()
    """Longest segment of each name on the critical path, in order of the total time of the name."""
    has_path: bool = False
    """Whether the first lane is a critical path, whose segments the page can step through."""
    notes: Sequence[str] = ()
    """Notes on what the picture leaves out."""
    is_flame: bool = False
    """Whether each lane contains the callees of the lane above: a click zooms in."""


# Links the events that an answer mentions to their rows on a page.


_EVENT: Final = re.compile(r"\b[Ee]vent (\d{1,12})\b")


@dataclass(frozen=True, slots=True)
class EventLinks:
    """The events of one trace that have a row on the page."""

    prefix: str
    """Prefix of link targets on the page, if it shows several traces."""
    events: Collection[int]

    def place(self, event: int) -> str:
        """Return the link target of an event on the page."""
        return f"{self.prefix}event-{event}"

    def link(self, event: int, words: str) -> str:
        """Return HTML text as a link to an event, if the page shows it."""
        return f'<a href="#{self.place(event)}">{words}</a>' if event in self.events else words

    def linked(self, text: str) -> str:
        """Link the events that an HTML text mentions.

        Examples
        --------
        >>> EventLinks("", {7}).linked("saves 24 % (event 7), event 8")
        'saves 24 % (<a href="#event-7">event 7</a>), event 8'
        """
        return _EVENT.sub(lambda match: self.link(int(match[1]), match[0]), text)


def events_of(block: Block) -> Iterator[int]:
    """Yield the events that a block mentions, in order.

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
