"""Answers as HTML: a part of a page, or what a notebook shows."""

from __future__ import annotations

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
from longpole.wording import escape, share

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.report.blocks import Bar, Block, Cell

__all__ = ["html", "inert"]

_WIDEST_NAME: Final = 120


def html(blocks: Iterable[Block]) -> str:
    """Write blocks as elements, with every text from a trace escaped."""
    return "\n".join(map(_element, blocks))


def _element(block: Block) -> str:
    match block:
        case Headline(text):
            return f"<h2>{inert(text)}</h2>"
        case Sentence(text):
            return f"<p>{inert(text)}</p>"
        case Table(columns, rows):
            return _table(columns, rows)
        case Chart(bars):
            return f'<div class="wide"><table>{"".join(map(_bar, bars))}</table></div>'
        case Entry(label, style, title, sentences):
            head = f'<strong class="{style}">{inert(label)}</strong> {inert(title)}'
            return f"<p>{head}<br>{'<br>'.join(map(inert, sentences))}</p>"
        case Notes(items, are_numbered):
            kind = "ol" if are_numbered else "ul"
            return f"<{kind}>{''.join(f'<li>{inert(item)}</li>' for item in items)}</{kind}>"


def _table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> str:
    head = "".join(f"<th{_side(column)}>{inert(column.title)}</th>" for column in columns)
    cells = written(columns, rows, _WIDEST_NAME)
    body = "".join(f"<tr>{_cells(columns, row)}</tr>\n" for row in cells)
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"
    return f'<div class="wide">{table}</div>'


def _cells(columns: Sequence[Column], row: Sequence[tuple[str, str]]) -> str:
    return "".join(_cell(column, *texts) for column, texts in zip(columns, row, strict=True))


def _cell(column: Column, text: str, short: str) -> str:
    """Show a value; a name that is shortened or put into words is whole in its tooltip."""
    tooltip = f' title="{inert(text)}"' if short != text else ""
    return f"<td{_side(column)}{tooltip}>{inert(short)}</td>"


def _side(column: Column) -> str:
    """Mark what is aligned to the left; figures, which are most cells, need no mark."""
    if column.type == "name":
        return ' class="name"'
    return ' class="text"' if column.is_left else ""


def _bar(bar: Bar) -> str:
    width = f"{min(max(bar.share, 0.0), 1.0):.3f}"
    return (
        f"<tr><td>{inert(share(bar.share))}</td><td>{inert(bar.amount)}</td>"
        f'<td><div class="bar" style="--share: {width}"></div></td>'
        f'<td class="text">{inert(bar.label)}</td></tr>\n'
    )


def inert(text: str) -> str:
    """Show a text from a stranger as it is: no markup, nothing that turns its direction."""
    return escape_html(escape(text))
