"""Writes answers as CSV: one table, for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from longpole.words.wording import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from longpole.report.blocks import Cell
    from longpole.report.document import Document

_ROWS_AT_A_TIME: Final = 1_000
_FORMULAS: Final = frozenset("=+-@")
_SKIPPED: Final = frozenset("\t\r\n\0")
"""Characters that spreadsheets skip at the beginning of a cell."""


def csv_chunks(document: Document, *, has_header: bool) -> Iterator[str]:
    """Write the records of an answer; the first of several answers has the header line."""
    if document.csv_rows is not None:
        if has_header:
            yield _lines([document.columns])
        yield from document.csv_rows()
        return
    records = iter(document.records())
    first = next(records, None)
    columns = document.columns if first is None else list(first)
    if not columns:
        return
    if has_header:
        yield _lines([columns])
    rows = (map(_cell, record.values()) for record in chain(filter(None, [first]), records))
    while some := list(islice(rows, _ROWS_AT_A_TIME)):
        yield _lines(some)


def _lines(rows: Iterable[Iterable[Cell]]) -> str:
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows(rows)
    return table.getvalue()


def _cell(value: Cell) -> Cell:
    if isinstance(value, bool):
        return json.dumps(value)
    return harmless(value) if isinstance(value, str) else value


def harmless(text: str) -> str:
    r"""Return a text that spreadsheets do not read as a formula; invisible characters are escaped.

    Full-width and small signs count too, since spreadsheets read them as ASCII signs in some
    languages.

    Examples
    --------
    >>> harmless("=cmd()"), harmless("\uff1dcmd()"), harmless("aten::mm")
    ("'=cmd()", "'\uff1dcmd()", 'aten::mm')
    """
    begins = unicodedata.normalize("NFKC", text.lstrip()[:1])
    is_formula = begins[:1] in _FORMULAS or text[:1] in _SKIPPED
    return escape(f"'{text}" if text and is_formula else text)
