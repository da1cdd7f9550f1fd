"""Which rows an answer is about, and in which order: what everybody can ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["matching", "sorted_by"]


def matching(rows: pl.DataFrame, where: pl.Expr | str | None) -> pl.DataFrame:
    """Keep the rows for which a condition holds; texts are compared as texts.

    Parameters
    ----------
    rows
        A frame.
    where
        An expression of polars, or a condition as in SQL, such as
        `name LIKE '%gemm%' AND stream = 7`. None keeps all rows.

    Raises
    ------
    ValueError
        It is no condition, or asks for a column that the frame lacks.

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
    from polars.exceptions import PolarsError

    # Categories only know equality; conditions on texts are meant for texts.
    texts = rows.with_columns(pl.col(pl.Categorical).cast(pl.String))
    try:
        condition = pl.sql_expr(where) if isinstance(where, str) else where
        holds = texts.select(condition.alias("holds"))["holds"]
    except PolarsError as error:
        message = f"invalid condition {str(where)!r}: {_reason(error, rows)}"
        raise ValueError(message) from error
    if holds.dtype != pl.Boolean or len(holds) not in {1, rows.height}:
        message = f"{str(where)!r} is not a condition on rows"
        raise ValueError(message)
    return rows.filter(holds if len(holds) == rows.height else pl.lit(bool(holds[0])))


def sorted_by(rows: pl.DataFrame, column: str | None) -> pl.DataFrame:
    """Sort rows by a column: the largest numbers first, all else ascending, nulls last.

    Parameters
    ----------
    rows
        A frame; rows that are equal in the column stay in their order.
    column
        Its name; None keeps the order.

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
    """
    if column is None or not rows.columns:
        return rows
    import polars as pl

    if column not in rows.columns:
        message = f"there is no column {column!r}: the columns are {', '.join(rows.columns)}"
        raise ValueError(message)
    dtype = rows.schema[column]
    if dtype.is_nested():
        message = f"the column {column!r} has lists, which have no order"
        raise ValueError(message)
    key = pl.col(column) if dtype.is_numeric() else pl.col(column).cast(pl.String)
    return rows.sort(key, descending=dtype.is_numeric(), nulls_last=True, maintain_order=True)


def _reason(error: Exception, rows: pl.DataFrame) -> str:
    from polars.exceptions import ColumnNotFoundError

    if isinstance(error, ColumnNotFoundError):
        return (
            f"the columns are {', '.join(rows.columns)}; texts need quotes, as in kind = 'kernel'"
        )
    return str(error).splitlines()[0]
