"""Answers as CSV: one table, for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from longpole.wording import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from longpole.report.blocks import Cell
    from longpole.report.document import Document

__all__ = ["csv_chunks"]

_ROWS_AT_A_TIME: Final = 1_000


def csv_chunks(document: Document, *, has_header: bool) -> Iterator[str]:
    """Write the records of an answer; the first of several answers has the header."""
    records = iter(document.records())
    first = next(records, None)
    columns = document.columns if first is None else list(first)
    if not columns:
        return
    if has_header:
        yield _lines([columns])
    rows = (map(_harmless, record.values()) for record in chain(filter(None, [first]), records))
    while some := list(islice(rows, _ROWS_AT_A_TIME)):
        yield _lines(some)


def _lines(rows: Iterable[Iterable[Cell]]) -> str:
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows(rows)
    return table.getvalue()


def _harmless(value: Cell) -> Cell:
    """Keep a spreadsheet from taking a text for a formula.

    Examples
    --------
    >>> _harmless("=cmd()"), _harmless("aten::mm"), _harmless(-1)
    ("'=cmd()", 'aten::mm', -1)
    """
    if isinstance(value, bool):
        return json.dumps(value)
    if not isinstance(value, str):
        return value
    return escape(f"'{value}" if value and value[0] in "=+-@\t\r\n\0" else value)
