"""Describes an input, and converts frames to rows, for an answer."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from longpole.report.csv import harmless
from longpole.report.document import Warned, flat
from longpole.tables.findings import READING_HINTS
from longpole.words.data import plain
from longpole.words.wording import escape

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    import polars as pl

    from longpole.jobs.findings import RankFinding
    from longpole.report.document import Record
    from longpole.trace.trace import Trace

_ROWS_AT_A_TIME: Final = 10_000
_NOT_ASCII: Final = re.compile("[^\x00-\x7f]")
_NOT_PLAIN: Final = r"^[^0-9A-Za-z_(]|[^ -~]"
"""Texts that `harmless` may change."""


def name_of(path: str) -> str:
    """Return the name of an input for people."""
    return "stdin" if path == "-" else escape(path)


def describe(path: str, trace: Trace) -> dict[str, Any]:
    """Return what was read, for the envelope."""
    return {
        "path": path,
        "format": trace.format,
        "compression": trace.compression,
        "bytes": trace.n_bytes,
        "events": trace.n_events,
        "rank": trace.rank,
        "world_size": trace.world_size,
    }


def warnings_of(trace: Trace) -> list[Warned]:
    """Return what was lost or altered while reading, for the envelope."""
    severe = ("altered", "data_loss")
    return [
        Warned(
            row["code"],
            row["count"],
            row["sentence"],
            row["effect"],
            READING_HINTS.get(row["code"]),
        )
        for row in trace.core.diagnostics().to_dicts()
        if row["severity"] in severe
    ]


def warnings_of_ranks(losses: Iterable[RankFinding]) -> list[Warned]:
    """Return what was lost of several ranks, for the envelope."""
    return [
        Warned(it.kind.replace(" ", "_"), it.count, it.message, "the rest is answered")
        for it in losses
    ]


def records_of(path: str, frame: pl.DataFrame) -> Iterator[Record]:
    """Yield every row with its input."""
    for rows in flat(frame).iter_slices(_ROWS_AT_A_TIME):
        yield from ({"path": path, **row} for row in rows.iter_rows(named=True))


def record_of(data: Any, path: str | None = None) -> Record:
    """Return the single values of an answer's data as a row, without its lists and objects."""
    values = {} if path is None else {"path": path}
    fields = plain(data).items()
    return values | {name: value for name, value in fields if not isinstance(value, list | dict)}


def json_rows(frame: pl.DataFrame) -> Iterator[str]:
    """Yield every row as a line of JSON in ASCII."""
    for rows in frame.iter_slices(_ROWS_AT_A_TIME):
        text = rows.write_ndjson()
        if not text.isascii():
            text = _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)
        yield from text.replace("\x7f", "\\u007f").splitlines()


def csv_rows(frame: pl.DataFrame, *, whole: Collection[str] = ()) -> Iterator[str]:
    """Yield the rows as CSV, as `longpole.report.csv` writes records.

    Parameters
    ----------
    frame
        The rows.
    whole
        Columns of floats in which whole numbers are written without a point.
    """
    import polars as pl

    for rows in flat(frame).iter_slices(_ROWS_AT_A_TIME):
        columns = [_csv_column(column, is_whole=column.name in whole) for column in rows]
        yield pl.DataFrame(columns).write_csv(include_header=False)


def _csv_column(column: pl.Series, *, is_whole: bool) -> pl.Series:
    """Return a column whose cells polars writes as Python's CSV writer does."""
    import polars as pl

    if column.dtype.is_float():
        as_integers = column.cast(pl.Int64, strict=False)
        if is_whole and as_integers.cast(pl.Float64).equals(column, check_names=False):
            return as_integers
        texts = [
            None if number is None else _digits(number, is_whole=is_whole) for number in column
        ]
        return pl.Series(column.name, texts, dtype=pl.String)
    if column.dtype != pl.String:
        return column
    distinct = column.unique() if column.str.contains(_NOT_PLAIN).any() else column.clear()
    # polars writes an empty text as two quotation marks, and null as nothing.
    changed = {text: harmless(text) for text in distinct.drop_nulls() if harmless(text) != text}
    return column.replace({**changed, "": None})


def _digits(value: float, *, is_whole: bool) -> str:
    return repr(int(value) if is_whole and value.is_integer() else value)
