"""Filtering and sorting of the rows of any table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

_SHOWN_CHARACTERS: Final = 200
_IN_SUMMARY: Final = {"time": "duration", "self time": "self", "of step": "window share"}
"""Headings of the summary, and the columns of tables that have the same figure."""


def matching(rows: pl.DataFrame, where: pl.Expr | str | None) -> pl.DataFrame:
    """Return the rows that match a condition.

    Parameters
    ----------
    rows
        A frame.
    where
        A polars expression, or an SQL condition as a string, such as `name LIKE '%gemm%' AND stream
        = 7`. None keeps all rows. A string is parsed here and only accesses the columns of the
        frame: it cannot read files or open connections.

    Raises
    ------
    ValueError
        The condition is invalid; the message contains the position and the reason.

    Examples
    --------
    >>> import polars as pl
    >>> rows = pl.DataFrame({"name": ["gemm", "add"]}, schema={"name": pl.Categorical})
    >>> matching(rows, "name LIKE 'g%'").height, matching(rows, pl.col("name") != "gemm").height
    (1, 1)
    """
    if where is None:
        return rows
    import polars as pl

    holds = _of_text(rows, where) if isinstance(where, str) else _of_expression(rows, where)
    return rows.filter(holds if len(holds) == rows.height else pl.lit(bool(holds[0])))


def sorted_by(rows: pl.DataFrame, column: str | None, titles: Sequence[str] = ()) -> pl.DataFrame:
    """Sort rows by a column: numbers in descending order, other types ascending, nulls last.

    Parameters
    ----------
    rows
        A frame. Rows with equal values keep their order.
    column
        Column name, or its printed title; None keeps the order.
    titles
        Printed titles of the columns, in their order.

    Raises
    ------
    ValueError
        The frame lacks the column, or its cells are lists.

    Examples
    --------
    >>> import polars as pl
    >>> rows = pl.DataFrame({"name": ["add", "gemm", "relu"], "count": [3, None, 7]})
    >>> sorted_by(rows, "count")["name"].to_list()
    ['relu', 'add', 'gemm']
    >>> sorted_by(rows, "number of calls", ["name", "number of calls"])["count"].to_list()
    [7, 3, None]
    """
    if column is None or not rows.columns:
        return rows
    import polars as pl

    column = _column_named(column, rows.columns, titles)
    dtype = rows.schema[column]
    if dtype.is_nested():
        message = f"the column {column!r} has lists, which have no order"
        raise ValueError(message)
    # `pl.col(column)` would treat names from a trace such as "^.*$" as patterns.
    values = rows.get_column(column)
    key = values if dtype.is_numeric() else values.cast(pl.String)
    order = key.to_frame("key").with_row_index("row")
    order = order.sort("key", descending=dtype.is_numeric(), nulls_last=True, maintain_order=True)
    return rows[order["row"]]


def _column_named(asked: str, columns: Sequence[str], titles: Sequence[str]) -> str:
    """Return the column with this name or printed title, such as `duration` or `host self`."""
    if asked in columns:
        return asked
    told = {_words(title): column for column, title in zip(columns, titles, strict=bool(titles))}
    names = {_words(name): name for name in columns}
    names |= {_words(name.removesuffix("_ns")): name for name in columns}
    known = names | told
    words = _words(asked)
    for name in (words, _IN_SUMMARY.get(words, "")):
        if name in known:
            return known[name]
    message = f"there is no column {asked!r}: the columns are {', '.join(columns)}"
    printed = [title for title in titles if _words(title) not in names]
    raise ValueError(f"{message}; as printed also {', '.join(printed)}" if printed else message)


def _words(name: str) -> str:
    return name.lower().replace("_", " ")


def _of_text(rows: pl.DataFrame, where: str) -> pl.Series:
    """Evaluate a condition in the grammar of `selection.grammar`."""
    from longpole.rows.selection.evaluation import holds
    from longpole.rows.selection.grammar import ConditionError, parse

    try:
        return holds(parse(where), rows)
    except ConditionError as error:
        place, why = error.position, str(error)
    # Raised outside the handler, so that the exception has no context.
    shown = where if len(where) <= _SHOWN_CHARACTERS else f"{where[:_SHOWN_CHARACTERS]}…"
    message = f"invalid condition {shown!r}, at character {place}: {why}"
    raise ValueError(message)


def _of_expression(rows: pl.DataFrame, where: pl.Expr) -> pl.Series:
    """Evaluate a polars expression; categoricals are strings, which support more operations."""
    import polars as pl
    from polars.exceptions import ColumnNotFoundError, PolarsError

    if not isinstance(where, pl.Expr):
        message = f"where is a text or an expression of polars, not {type(where).__name__}"
        raise TypeError(message)
    texts = rows.with_columns(pl.col(pl.Categorical).cast(pl.String))
    try:
        holds = texts.select(where.alias("holds"))["holds"]
    except PolarsError as error:
        is_unknown = isinstance(error, ColumnNotFoundError)
        why = f"the columns are {', '.join(rows.columns)}" if is_unknown else str(error)
        message = f"invalid condition {str(where)!r}: {why.splitlines()[0]}"
        raise ValueError(message) from error
    if holds.dtype != pl.Boolean or len(holds) not in {1, rows.height}:
        message = f"{str(where)!r} is not a condition on rows"
        raise ValueError(message)
    return holds
