"""Answers as Markdown, to paste into a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.blocks import (
    Chart,
    Column,
    Entry,
    Headline,
    Notes,
    Sentence,
    Table,
    written,
)
from longpole.wording import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.report.blocks import Block, Cell

__all__ = ["markdown"]

_WIDEST_NAME: Final = 80
_ACTIVE: Final = "|`*_[]\\"
_BAR: Final = (Column("share", "share"), Column("amount"), Column("what"))


def markdown(blocks: Iterable[Block]) -> str:
    """Write blocks one below the other."""
    return "\n".join("\n".join([*_lines(block), ""]) for block in blocks)


def _lines(block: Block) -> list[str]:
    match block:
        case Headline(text):
            return [f"### {_inert(text)}"]
        case Sentence(text):
            return [_inert(text)]
        case Table(columns, rows):
            return _table(columns, rows)
        case Chart(bars):
            return _table(_BAR, [(bar.share, bar.amount, bar.label) for bar in bars])
        case Entry(label, _, title, sentences):
            return [f"- **{_inert(label)}** {_inert(title)}: {_inert(' '.join(sentences))}"]
        case Notes(items, are_numbered):
            numbered = enumerate(items, 1)
            return [
                f"{f'{number}.' if are_numbered else '-'} {_inert(item)}"
                for number, item in numbered
            ]


def _table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> list[str]:
    if not rows:
        return ["(no rows)"]
    titles = [_inert(column.title) for column in columns]
    sides = [":--" if column.is_left else "--:" for column in columns]
    texts = written(columns, rows, _WIDEST_NAME)
    cells = [[_inert(short) for _, short in row] for row in texts]
    return [f"| {' | '.join(line)} |" for line in (titles, sides, *cells)]


def _inert(text: str) -> str:
    """Keep a text within its cell, and what is Markdown or HTML in it from acting."""
    plain = escape(text).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{letter}" if letter in _ACTIVE else letter for letter in plain)
