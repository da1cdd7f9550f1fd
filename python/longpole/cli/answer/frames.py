"""Frames as blocks and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.blocks import Column, Table

if TYPE_CHECKING:
    import polars as pl

    from longpole.report.blocks import Type
    from longpole.report.document import Record

__all__ = ["records_of", "table_of"]

_DURATIONS: Final = frozenset({"duration_ns", "makespan_ns", "gain_ns"})


def records_of(path: str, frame: pl.DataFrame) -> list[Record]:
    """Give every row with the input it comes from."""
    return [{"path": path, **row} for row in frame.iter_rows(named=True)]


def table_of(frame: pl.DataFrame) -> Table:
    """Give a frame as a table for people."""
    columns = [
        Column(name.removesuffix("_ns") if name in _DURATIONS else name, _type(name, dtype))
        for name, dtype in frame.schema.items()
    ]
    return Table(columns, frame.rows())


def _type(name: str, dtype: pl.DataType) -> Type:
    if name in _DURATIONS:
        return "duration"
    if name == "name" or name.endswith("_name"):
        return "name"
    if dtype.is_float():
        return "share"
    if dtype.is_numeric():
        return "number"
    return "flag" if str(dtype) == "Boolean" else "text"
