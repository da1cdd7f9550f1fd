"""Answers as CSV: one table, for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

from longpole.wording import escape

if TYPE_CHECKING:
    from longpole.report.blocks import Cell
    from longpole.report.document import Document

__all__ = ["csv_text"]


def csv_text(document: Document, *, has_header: bool) -> str:
    """Write the records of an answer; the first of several answers has the header."""
    records = document.records()
    columns = list(records[0]) if records else document.columns
    if not columns:
        return ""
    table = io.StringIO()
    writer = csv.DictWriter(table, columns, lineterminator="\n")
    if has_header:
        writer.writeheader()
    for record in records:
        writer.writerow({key: _harmless(value) for key, value in record.items()})
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
