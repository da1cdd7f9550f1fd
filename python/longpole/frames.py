"""Tables of the core as polars frames, in which a column name always has one dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from longpole._core import Table

__all__ = ["frame_of", "typed"]

_TEXTS = ("kind", "name", "process", "thread")


def frame_of(table: Table) -> pl.DataFrame:
    """Take a table of the core over, without copying what already has its dtype."""
    import polars as pl

    return typed(pl.DataFrame(table))


def typed(frame: pl.DataFrame) -> pl.DataFrame:
    """Give each column the dtype that its name has in every frame, so that frames join.

    Examples
    --------
    >>> import polars as pl
    >>> typed(pl.DataFrame({"device": [0], "name": ["gemm"]})).dtypes
    [Int32, Categorical]
    """
    import polars as pl

    dtypes = dict.fromkeys(_TEXTS, pl.Categorical) | {"device": pl.Int32}
    wrong = [name for name in frame.columns if frame.schema[name] != dtypes.get(name)]
    # In the arguments of events there may be anything; a device that is no number is null.
    return frame.with_columns(
        pl.col(name).cast(pl.String).cast(dtypes[name], strict=False)
        for name in wrong
        if name in dtypes
    )
