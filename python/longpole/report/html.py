"""Answers as one HTML page that needs nothing else: no script, no font, no network."""

from __future__ import annotations

from html import escape as escape_html
from typing import TYPE_CHECKING, Final

from longpole.report.blocks import Chart, Column, Entry, Headline, Notes, Sentence, Table, shown
from longpole.wording import escape, share, short_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.report.blocks import Bar, Block, Cell

__all__ = ["html", "page"]

_WIDEST_NAME: Final = 120

_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; }}
h2 {{ font-size: 1.2em; margin-top: 2em; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1em 0; }}
th {{ font-weight: 600; text-align: left; }}
th, td {{ border-bottom: 1px solid #8884; padding: .2em .8em; vertical-align: top; }}
.wide {{ overflow-x: auto; }}
.number {{ text-align: right; white-space: nowrap; }}
.bar {{ background: #4e79a7; height: .9em; min-width: 1px; }}
.bad {{ color: #c0392b; }} .warn {{ color: #b9770e; }} .dim {{ opacity: .7; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def page(answers: Iterable[Iterable[Block]], title: str = "longpole") -> str:
    """Write answers as one page."""
    return _PAGE.format(title=_inert(title), body="\n".join(map(html, answers)))


def html(blocks: Iterable[Block]) -> str:
    """Write blocks as a part of a page."""
    return "\n".join(map(_element, blocks))


def _element(block: Block) -> str:
    match block:
        case Headline(text):
            return f"<h2>{_inert(text)}</h2>"
        case Sentence(text):
            return f"<p>{_inert(text)}</p>"
        case Table(columns, rows):
            return _table(columns, rows)
        case Chart(bars):
            return f'<div class="wide"><table>{"".join(map(_bar, bars))}</table></div>'
        case Entry(label, style, title, sentences):
            head = f'<strong class="{style}">{_inert(label)}</strong> {_inert(title)}'
            return f"<p>{head}<br>{'<br>'.join(map(_inert, sentences))}</p>"
        case Notes(items):
            return f"<ul>{''.join(f'<li>{_inert(item)}</li>' for item in items)}</ul>"


def _table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> str:
    head = "".join(f"<th{_side(column)}>{_inert(column.title)}</th>" for column in columns)
    body = "".join(f"<tr>{_cells(columns, row)}</tr>\n" for row in rows)
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"
    return f'<div class="wide">{table}</div>'


def _cells(columns: Sequence[Column], row: Sequence[Cell]) -> str:
    return "".join(_cell(column, value) for column, value in zip(columns, row, strict=True))


def _cell(column: Column, value: Cell) -> str:
    """Show a value; a long name is shortened, and stands as a whole in its tooltip."""
    text = shown(column, value)
    short = short_name(text, _WIDEST_NAME) if column.type == "name" else text
    tooltip = f' title="{_inert(text)}"' if short != text else ""
    return f"<td{_side(column)}{tooltip}>{_inert(short)}</td>"


def _side(column: Column) -> str:
    if column.type == "name":
        return ' class="name"'
    return "" if column.is_left else ' class="number"'


def _bar(bar: Bar) -> str:
    width = f"{20 * min(max(bar.share, 0.0), 1.0):.3f}em"
    return (
        f'<tr><td class="number">{_inert(share(bar.share))}</td>'
        f'<td class="number">{_inert(bar.amount)}</td>'
        f'<td><div class="bar" style="width: {width}"></div></td>'
        f"<td>{_inert(bar.label)}</td></tr>\n"
    )


def _inert(text: str) -> str:
    """Show a text from a stranger as it is: no markup, nothing that turns its direction."""
    return escape_html(escape(text))
