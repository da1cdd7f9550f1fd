"""Sentences below a table: what its values refer to, and what a missing or negative one means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.tables.catalogue import view_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

ABOVE_ALL: Final = "Shares above 100 % are sums over several devices, threads or streams."
WHOLE_DEVICE: Final = "A row without a stream is about the device as a whole."
AS_RECORDED: Final = "Times are as recorded, with what the profiler added."


def lacks(column: str) -> Callable[[pl.DataFrame], bool]:
    """Return the condition that a value of a column is null."""
    return lambda rows: rows[column].null_count() > 0


def is_negative(column: str) -> Callable[[pl.DataFrame], bool]:
    """Return the condition that a value of a column is negative."""
    return lambda rows: bool((rows[column] < 0).any())


def always(_: pl.DataFrame) -> bool:
    """Whether a sentence is shown below any rows: True."""
    return True


def legend(name: str, rows: pl.DataFrame, by: str | None = None) -> list[str]:
    """Return the sentences to show below the rows of a table.

    Examples
    --------
    >>> import polars as pl
    >>> legend("launches", pl.DataFrame({"delay_ns": [-5]}))
    ['A delay below zero: the activity began before its launch call returned.']
    """
    told = [text for applies, text in view_of(name, by).legend if applies(rows)]
    largest = rows["window_share"].max() if "window_share" in rows.columns else None
    return [*([ABOVE_ALL] if isinstance(largest, float) and largest > 1 else []), *told]
