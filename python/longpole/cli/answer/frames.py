"""Frames as rows for programs."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from longpole.report.csv import harmless
from longpole.report.frames import flat

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from longpole.report.document import Record

__all__ = ["csv_rows", "json_rows", "records_of"]

_ROWS_AT_A_TIME: Final = 10_000
_NOT_ASCII: Final = re.compile("[^\x00-\x7f]")
_NOT_PLAIN: Final = r"^[^0-9A-Za-z_(]|[^ -~]"
"""Texts that `harmless` may change."""


def records_of(path: str, frame: pl.DataFrame) -> Iterator[Record]:
    """Yield every row with its input."""
    for rows in flat(frame).iter_slices(_ROWS_AT_A_TIME):
        yield from ({"path": path, **row} for row in rows.iter_rows(named=True))


def json_rows(frame: pl.DataFrame) -> Iterator[str]:
    """Yield every row as a line of JSON in ASCII."""
    for rows in frame.iter_slices(_ROWS_AT_A_TIME):
        text = rows.write_ndjson()
        if not text.isascii():
            text = _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)
        yield from text.replace("\x7f", "\\u007f").splitlines()


def csv_rows(frame: pl.DataFrame) -> Iterator[str]:
    """Yield the rows as CSV, as `longpole.report.csv` writes records."""
    import polars as pl

    for rows in flat(frame).iter_slices(_ROWS_AT_A_TIME):
        columns = [_csv_column(column) for column in rows]
        yield pl.DataFrame(columns).write_csv(include_header=False)


def _csv_column(column: pl.Series) -> pl.Series:
    """Return a column of which polars writes every cell as Python does."""
    import polars as pl

    if column.dtype.is_float():
        texts = [None if number is None else repr(number) for number in column.to_list()]
        return pl.Series(column.name, texts, dtype=pl.String)
    if column.dtype != pl.String:
        return column
    distinct = column.unique() if column.str.contains(_NOT_PLAIN).any() else column.clear()
    # polars writes an empty text as two quotation marks, and null as nothing.
    changed = {text: harmless(text) for text in distinct.drop_nulls() if harmless(text) != text}
    return column.replace({**changed, "": None})
