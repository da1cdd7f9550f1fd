"""Reads TunableOp files as columns: all columns part by part, or only those needed to choose rows.

A file of a shared tuning database has hundreds of thousands of rows. All columns of all rows take
about ten times the size of the file. Operations that need few columns use the outline, in which
GEMMs and solutions are numbers, and read the names of the rows that they show from the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import polars as pl

_PART_BYTES: Final = 1 << 20
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_ROWS_AT_A_TIME: Final = 10_000
_ENDINGS: Final = {"lf": 1, "crlf": 2, "nothing": 0}
_NAMES: Final = ("operator", "parameters", "solution")


def frames_of(text: bytes, columns: Collection[str] | None = None) -> Iterator[pl.DataFrame]:
    """Read a file part by part; together the frames are `TunableFile.pieces`.

    Parameters
    ----------
    text
        The file.
    columns
        The texts and sizes to read; all by default. Places, kinds and times are always read.
    """
    import polars as pl

    begin, n_lines = 0, 0
    while begin < len(text) or not begin:
        end = _end_of_part(text, begin)
        part = text[begin:end]
        frame = _frame(part, columns)
        yield frame.with_columns(pl.col("offset") + begin, pl.col("line") + n_lines)
        n_lines += part.count(b"\n")
        begin = end
        if not text:
            return


def outline_of(texts: Sequence[bytes], *, place: bool = False) -> pl.DataFrame:
    """Read the columns that are needed to choose between rows, in the order of the files.

    The columns are `file`, `line`, `offset`, `length` (without the line end), `ending`, `kind`,
    `family`, `time_ns`, `flops` (null with wildcards, or beyond 63 bits), `has_wildcards`, and the
    numbers `gemm` and `solution`, which are equal for equal names. With `place`, it is the order of
    the rows by their signatures and, for one GEMM, as `Line.rank` has them.
    """
    import polars as pl

    from longpole._core import outline_tunable

    return pl.DataFrame(outline_tunable(texts, place=place))


def width(ending: str) -> int:
    """Return the number of bytes of a line end."""
    return _ENDINGS[ending]


def spans(texts: Sequence[bytes], rows: pl.DataFrame) -> Iterator[bytes]:
    """Yield the text of each row of an outline, without its line end."""
    for some in rows.select("file", "offset", "length").iter_slices(_ROWS_AT_A_TIME):
        for number, offset, length in zip(*(column.to_list() for column in some), strict=True):
            yield texts[number][offset : offset + length]


def names_at(texts: Sequence[bytes], rows: pl.DataFrame) -> pl.DataFrame:
    """Return `operator`, `parameters` and `solution` of rows of an outline, null for null rows."""
    import polars as pl

    schema = dict.fromkeys(_NAMES, pl.String)
    parts = [pl.DataFrame(schema=schema)]
    columns = ("file", "offset", "length", "solution")
    for some in rows.select(columns).iter_slices(_ROWS_AT_A_TIME):
        found: list[Sequence[str | None]] = []
        for number, offset, length, solution in some.iter_rows():
            if offset is None:
                found.append((None, None, None))
                continue
            names = texts[number][offset : offset + length].decode().split(",", 3)
            found.append((*names[:2], None if solution is None else names[2]))
        columns_of = zip(*found, strict=True)
        parts.append(pl.DataFrame(dict(zip(_NAMES, columns_of, strict=True)), schema=schema))
    return pl.concat(parts)


def named(texts: Sequence[bytes], rows: pl.DataFrame) -> pl.DataFrame:
    """Replace the numbers of an outline by names."""
    return rows.drop("gemm", "solution").with_columns(names_at(texts, rows))


def _end_of_part(text: bytes, begin: int) -> int:
    """Return the end of the part that begins at `begin`: after a line end, or the file's end."""
    end = begin + _PART_BYTES
    while True:
        end = text.find(b"\n", end) + 1
        if not end:
            return len(text)
        # A byte order mark at the beginning of a part would be mistaken for that of the file.
        if not text.startswith(_BYTE_ORDER_MARK, end):
            return end


def _frame(text: bytes, columns: Collection[str] | None) -> pl.DataFrame:
    """Read a text: a row for each piece, with columns of `GemmRow`."""
    import polars as pl

    from longpole._core import read_tunable

    frame = pl.DataFrame(read_tunable(text, None if columns is None else set(columns)))
    texts = frame.with_columns(pl.selectors.categorical().cast(pl.String))
    return texts if columns is not None else texts.with_columns(matmul_m="n", matmul_n="m")
