"""Writes answers as Markdown, for example to paste into a pull request."""

from __future__ import annotations

import re
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
from longpole.words.wording import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.report.blocks import Block, Cell

_WIDEST_NAME: Final = 80
_ACTIVE: Final = "|`*_[]\\~"
_ADDRESS: Final = re.compile(r"://|\bwww\.|@|\b(?:mailto|xmpp):", re.IGNORECASE)
"""Words that Markdown turns into links, or GitHub into mentions of people."""
_OPENER: Final = re.compile(r"(?=(?:#{1,6}|[+-])(?:\s|$)|>|[=-]+$)|\d{1,9}(?=[.)](?:\s|$))")
"""Positions at which a text would begin a heading, a list, a quotation or a rule."""
_BAR: Final = (Column("share", "share"), Column("amount"), Column("what"))


def markdown(blocks: Iterable[Block]) -> str:
    """Write blocks as Markdown paragraphs, lists and tables."""
    return "\n".join("\n".join([*_lines(block), ""]) for block in blocks)


def _lines(block: Block) -> list[str]:
    match block:
        case Headline(text):
            return [f"### {_inert(text)}"]
        case Sentence(text):
            return [_line(text)]
        case Table(columns, rows):
            return _table(columns, rows)
        case Chart(bars):
            return _table(_BAR, [(bar.share, bar.amount, bar.label) for bar in bars])
        case Entry(label, _, title, sentences):
            return [f"- **{_inert(label)}** {_inert(title)}: {_inert(' '.join(sentences))}"]
        case Notes(items, are_numbered):
            numbered = enumerate(items, 1)
            return [
                f"{f'{number}.' if are_numbered else '-'} {_line(item)}"
                for number, item in numbered
            ]


def _line(text: str) -> str:
    """Escape a text so that it is a paragraph, regardless of its first characters."""
    inert = _inert(text)
    opener = _OPENER.match(inert)
    return f"{inert[: opener.end()]}\\{inert[opener.end() :]}" if opener else inert


def _table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> list[str]:
    if not rows:
        return ["(no rows)"]
    titles = [_inert(column.title) for column in columns]
    sides = [":--" if column.is_left else "--:" for column in columns]
    texts = written(columns, rows, _WIDEST_NAME)
    cells = [[_inert(short) for _, short in row] for row in texts]
    return [f"| {' | '.join(line)} |" for line in (titles, sides, *cells)]


def _inert(text: str) -> str:
    r"""Escape a text so that it stays in its cell and contains no Markdown, HTML or address.

    Examples
    --------
    >>> print(_inert("~~gone~~ at http://x.example|y"))
    \~\~gone\~\~ at `http://x.example\|y`
    """
    words = escape(text).split(" ")
    return " ".join(_code(word) if _ADDRESS.search(word) else _quoted(word) for word in words)


def _quoted(text: str) -> str:
    plain = text.replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{letter}" if letter in _ACTIVE else letter for letter in plain)


def _code(word: str) -> str:
    """Write a word as code, in which renderers do not look for addresses."""
    fence = "`" * (1 + max(map(len, re.findall("`+", word)), default=0))
    space = " " if "`" in word else ""
    inert = word.replace("|", "\\|")  # even in code, a bar ends the cell
    return f"{fence}{space}{inert}{space}{fence}"
