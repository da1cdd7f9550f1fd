"""Converts tables of the core to polars frames; a column name has one dtype in all of them."""

from __future__ import annotations

import struct
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    import polars as pl

    from longpole._core import Table

_FEW: Final = 10_000
_TEXTS: Final = ("kind", "name", "process", "thread")


def frame_of(table: Table) -> pl.DataFrame:
    """Convert a table of the core, without copying columns that already have their dtype."""
    import polars as pl

    return typed(pl.DataFrame(table))


def row_bytes(rows: pl.Series) -> bytes:
    """Return row numbers as the bytes that the core accepts.

    Examples
    --------
    >>> import polars as pl
    >>> row_bytes(pl.Series([1, 0])).hex()
    '0100000000000000'
    """
    import polars as pl

    numbers = rows.cast(pl.UInt32)
    if len(numbers) > _FEW:
        return numbers.to_numpy().tobytes()
    # The import of NumPy takes longer than this.
    return struct.pack(f"={len(numbers)}I", *numbers.to_list())


def typed(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame with the dtypes that its columns have in all frames, so that frames join.

    Examples
    --------
    >>> import polars as pl
    >>> typed(pl.DataFrame({"device": [0], "name": ["gemm"]})).dtypes
    [Int32, Categorical]
    """
    import polars as pl

    dtypes = dict.fromkeys(_TEXTS, pl.Categorical) | {"device": pl.Int32}
    wrong = [name for name in frame.columns if frame.schema[name] != dtypes.get(name)]
    # Arguments of events can contain anything; a device that is not a number becomes null.
    return frame.with_columns(
        pl.col(name).cast(pl.String).cast(dtypes[name], strict=False)
        for name in wrong
        if name in dtypes
    )


def frame_schema(row: Any, *, last: Any = None) -> pl.Schema:
    """Return the columns of a frame and their dtypes from the declaration of its rows.

    Parameters
    ----------
    row
        A `longpole.words.data.Row`.
    last
        The base class whose columns come last instead of first.

    Examples
    --------
    >>> from longpole.words.data import Row
    >>> class Stream(Row):
    ...     device: int | None
    ...     names: list[str]
    >>> frame_schema(Stream)
    Schema([('device', Int32), ('names', List(String))])
    """
    import polars as pl

    hints = get_type_hints(row)
    moved = get_type_hints(last) if last is not None else {}
    names = [*(name for name in hints if name not in moved), *moved]
    dtypes = {"device": pl.Int32}
    return pl.Schema((name, dtypes.get(name) or _dtype(hints[name])) for name in names)


def _dtype(declared: Any) -> Any:
    import polars as pl

    origin = get_origin(declared)
    parts = [part for part in get_args(declared) if part is not NoneType]
    if origin in (Union, UnionType):
        return _dtype(parts[0])
    if origin is list:
        return pl.List(_dtype(parts[0]))
    dtypes = {int: pl.Int64, float: pl.Float64, bool: pl.Boolean}
    return dtypes.get(declared, pl.String)


def argument(table: pl.DataFrame, key: str, dtype: pl.DataType | type[pl.DataType]) -> pl.Expr:
    """Return an argument of events as numbers; null if it is missing or not a number.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"bytes": ["8", "many"]}, schema={"bytes": pl.Categorical})
    >>> table.select(argument(table, "bytes", pl.Int64), argument(table, "at", pl.Int64)).rows()
    [(8, None), (None, None)]
    """
    import polars as pl

    if key not in table.columns:
        return pl.lit(None, dtype).alias(key)
    values = pl.col(key)
    # If any event has a string, or a number beyond 64 bits, the column is a string column.
    is_text = table.schema[key] == pl.Categorical
    return (values.cast(pl.String) if is_text else values).cast(dtype, strict=False)
