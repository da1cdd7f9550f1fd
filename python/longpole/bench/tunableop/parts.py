"""The pieces of a TunableOp file, read a part of the file at a time.

A file of a shared tuning database has hundreds of thousands of rows. All columns of all rows take
about ten times the file, so what needs few columns reads a part, keeps those, and goes on.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

__all__ = ["Outline", "frames_of", "outline_of"]

_PART_BYTES: Final = 4 << 20
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_NUMBER: Final = re.compile(
    rb"\s*([+-]?(?:\d+\.?\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|inf|nan))", re.IGNORECASE
)

_ENDINGS: Final = {"lf": 1, "crlf": 2, "nothing": 0}


class Outline(NamedTuple):
    """What tells rows apart and decides between them."""

    pieces: pl.DataFrame
    """`kind`, `line`, `offset`, `length` (without the line end), `ending`, `operator`,
    `parameters`, `solution`, `family`, `time_ns`, and `rest`: the row after its solution."""
    validators: list[tuple[str, str]]
    """Key and value of each validator, in the order of the file."""


def frames_of(text: bytes) -> Iterator[pl.DataFrame]:
    """Read a file part by part; together the frames are `TunableFile.pieces`."""
    import polars as pl

    begin, n_lines = 0, 0
    while begin < len(text) or not begin:
        end = _end_of_part(text, begin)
        part = text[begin:end]
        frame = _frame(part)
        yield frame.with_columns(pl.col("offset") + begin, pl.col("line") + n_lines)
        n_lines += part.count(b"\n")
        begin = end
        if not text:
            return


def outline_of(text: bytes) -> Outline:
    """Read the few columns that decide between rows."""
    import polars as pl

    narrow: list[pl.DataFrame] = []
    validators: list[tuple[str, str]] = []
    for frame in frames_of(text):
        validators += frame.filter(pl.col("kind") == "validator").select("key", "value").iter_rows()
        narrow.append(_with_raw_rest(_narrow(frame), text))
    return Outline(pl.concat(narrow), validators)


def _end_of_part(text: bytes, begin: int) -> int:
    """Return where the part that begins at `begin` ends: after a line end, or with the file."""
    end = begin + _PART_BYTES
    while True:
        end = text.find(b"\n", end) + 1
        if not end:
            return len(text)
        # A mark at the beginning of a part would be taken for that of the file.
        if not text.startswith(_BYTE_ORDER_MARK, end):
            return end


def _frame(text: bytes) -> pl.DataFrame:
    """Read a text: a row for each piece, with the columns of `GemmRow`."""
    import polars as pl

    from longpole._core import read_tunable

    columns = pl.DataFrame(read_tunable(text))
    texts = columns.with_columns(pl.selectors.categorical().cast(pl.String))
    values = texts.with_columns(pl.col("value").str.split(",").list.first())
    return _with_lenient(values, text).with_columns(matmul_m="n", matmul_n="m")


def _with_lenient(pieces: pl.DataFrame, text: bytes) -> pl.DataFrame:
    """Read rows again that only torch's lenient parser understands.

    torch reads the first four fields of a row and ignores the others. Of the fourth it reads the
    number with which it begins.
    """
    import polars as pl

    from longpole._core import read_tunable

    unknown = pieces.filter(pl.col("reason").is_in(["too_many_fields", "time"]))
    spans = unknown.select("offset", "n_bytes", "ending").iter_rows()
    fields = [_without_end(text, *span).split(b",") for span in spans]
    plain = [b",".join([*each[:3], _leading_number(each[3])]) for each in fields if each[3:]]
    if not plain or len(plain) != len(fields):
        return pieces
    again = pl.DataFrame(read_tunable(b"\n".join(plain)))
    if again.height != unknown.height:
        return pieces
    places = ["line", "offset", "n_bytes", "ending"]
    times = [each[3].decode(errors="replace") for each in fields]
    rows = (
        again.with_columns(pl.selectors.categorical().cast(pl.String))
        .with_columns(pl.Series("time", times))
        .with_columns(unknown[places])
        .filter(pl.col("kind") == "result")
    )
    others = pieces.filter(~pl.col("offset").is_in(rows["offset"].to_list()))
    return pl.concat([others, rows.select(pieces.columns)]).sort("offset")


def _without_end(text: bytes, offset: int, n_bytes: int, ending: str) -> bytes:
    return text[offset : offset + n_bytes - _ENDINGS[ending]]


def _leading_number(field: bytes) -> bytes:
    """Return the number that a field begins with, as `atof` of C reads it, or 0."""
    found = _NUMBER.match(field)
    return found[1] if found else b"0"


def _narrow(frame: pl.DataFrame) -> pl.DataFrame:
    """Keep the columns of an outline."""
    import polars as pl

    kinds = pl.Enum(["validator", "result", "untuned", "blank", "byte_order_mark", "unknown"])
    families = pl.Enum(["default", "null", "rocblas", "hipblaslt", "cublaslt", "index", "other"])
    end_bytes = pl.col("ending").replace_strict(_ENDINGS, return_dtype=pl.Int64)
    written = pl.concat_str("time", "blas_parameters", separator=",", ignore_nulls=True)
    return frame.select(
        pl.col("kind").cast(kinds),
        pl.col("line").cast(pl.UInt32),
        pl.col("offset"),
        (pl.col("n_bytes") - end_bytes).cast(pl.UInt32).alias("length"),
        pl.col("ending").cast(pl.Enum(list(_ENDINGS))),
        *("operator", "parameters", "solution"),
        pl.col("family").cast(families),
        "time_ns",
        written.alias("rest"),
    )


def _with_raw_rest(narrow: pl.DataFrame, text: bytes) -> pl.DataFrame:
    """Replace the rest of the few rows whose columns do not have all of their text."""
    import polars as pl

    known = pl.sum_horizontal(
        pl.col(name).str.len_bytes() for name in ("operator", "parameters", "solution", "rest")
    )
    n_commas = pl.when(pl.col("rest") == "").then(2).otherwise(3)
    is_whole = known.cast(pl.Int64) + n_commas == pl.col("length")
    rows = narrow.with_row_index("row").filter((pl.col("kind") == "result") & ~is_whole)
    if not rows.height:
        return narrow
    spans = rows.select("offset", "length").iter_rows()
    raw = [text[at : at + length].split(b",", 3)[-1].decode("latin-1") for at, length in spans]
    rest = narrow["rest"].scatter(rows["row"].to_list(), raw)
    return narrow.with_columns(rest=rest)
