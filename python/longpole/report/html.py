"""Writes answers as HTML: as part of a page, or for a notebook."""

from __future__ import annotations

import re
from functools import partial
from html import escape as escape_html
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
from longpole.words.wording import escape, share

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.report.blocks import Bar, Block, Cell
    from longpole.report.lanes import EventLinks

_WIDEST_NAME: Final = 120
_CODE: Final = re.compile(r"`([^`]+)`")


def html(blocks: Iterable[Block], links: EventLinks | None = None) -> str:
    """Write blocks as HTML elements, with every text from a trace escaped.

    With `links`, events that the blocks mention are links to their rows on the page.
    """
    return "\n".join(_element(block, links) for block in blocks)


def _element(block: Block, links: EventLinks | None) -> str:
    text_of = partial(prose, links=links)
    match block:
        case Headline(text):
            return f"<h2>{inert(text)}</h2>"
        case Sentence(text):
            return f"<p>{text_of(text)}</p>"
        case Table(columns, rows):
            return _table(columns, rows, links)
        case Chart(bars):
            return f'<div class="wide"><table>{"".join(map(_bar, bars))}</table></div>'
        case Entry(label, style, title, sentences):
            head = f'<strong class="{style}">{inert(label)}</strong> {text_of(title)}'
            return f"<p>{head}<br>{'<br>'.join(map(text_of, sentences))}</p>"
        case Notes(items, are_numbered):
            kind = "ol" if are_numbered else "ul"
            return f"<{kind}>{''.join(f'<li>{text_of(item)}</li>' for item in items)}</{kind}>"


def _table(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], links: EventLinks | None
) -> str:
    head = "".join(f"<th{_side(column)}>{inert(column.title)}</th>" for column in columns)
    cells = written(columns, rows, _WIDEST_NAME)
    pairs = zip(cells, rows, strict=True)
    body = "".join(f"<tr>{_cells(columns, row, values, links)}</tr>\n" for row, values in pairs)
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"
    return f'<div class="wide">{table}</div>'


def _cells(
    columns: Sequence[Column],
    row: Sequence[tuple[str, str]],
    values: Sequence[Cell],
    links: EventLinks | None,
) -> str:
    cells = zip(columns, row, values, strict=True)
    return "".join(_cell(column, *texts, value, links) for column, texts, value in cells)


def _cell(column: Column, text: str, short: str, value: Cell, links: EventLinks | None) -> str:
    """Write a cell; the tooltip of a shortened or reworded name has the full name."""
    if column.type == "share" and isinstance(value, int | float):
        part = min(max(value, 0.0), 1.0)
        return f'<td class="part" style="--share: {part:.3f}">{inert(text)}</td>'
    if links and text.isdecimal():
        if column.type == "event":
            return f"<td>{links.link(int(text), text)}</td>"
        if column.type == "row_of_event":
            return f'<td id="{links.place(int(text))}">{text}</td>'
    tooltip = f' title="{inert(text)}"' if short != text else ""
    return f"<td{_side(column)}{tooltip}>{inert(short)}</td>"


def _side(column: Column) -> str:
    """Return the attribute for left alignment; numbers, which are most cells, need none."""
    if column.type == "name":
        return ' class="name"'
    return ' class="text"' if column.is_left else ""


def _bar(bar: Bar) -> str:
    width = f"{min(max(bar.share, 0.0), 1.0):.3f}"
    return (
        f"<tr><td>{inert(share(bar.share))}</td><td>{inert(bar.amount)}</td>"
        f'<td><div class="bar" style="--share: {width}; --color: var(--{bar.color})"></div></td>'
        f'<td class="text">{inert(bar.label)}</td></tr>\n'
    )


def prose(text: str, links: EventLinks | None = None) -> str:
    """Write a text, with its code and the events that it mentions marked up.

    Examples
    --------
    >>> prose("Use `num_workers` <b>")
    'Use <code>num_workers</code> &lt;b&gt;'
    """
    found = _CODE.sub(r"<code>\1</code>", inert(text))
    return links.linked(found) if links else found


def inert(text: str) -> str:
    """Escape a text from an untrusted source: no markup, and no change of text direction."""
    return escape_html(escape(text))
