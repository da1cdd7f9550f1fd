"""Frames as rows for programs."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from longpole.report.frames import flat

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from longpole.report.document import Record

__all__ = ["json_rows", "records_of"]

_ROWS_AT_A_TIME: Final = 10_000
_NOT_ASCII: Final = re.compile("[^\x00-\x7f]")


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
