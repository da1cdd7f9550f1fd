"""Frames as blocks: a type for each column, by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.blocks import Column, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from longpole.report.blocks import Type

__all__ = ["flat", "table_of"]

_POINTS_IN_TIME: Final = ("start_ns", "end_ns", "time_ns")
_NAMES: Final = frozenset(
    ("annotation", "function", "kernel", "kernels", "name", "operator", "python")
)


def flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Write lists as texts, for cells that hold one value."""
    import polars as pl

    lists = pl.col(name for name, dtype in frame.schema.items() if dtype == pl.List(pl.String))
    return frame.with_columns(lists.list.join(" -> "))


def table_of(frame: pl.DataFrame, needed: str | None = None) -> Table:
    """Return a frame as a table for people; the column `needed` is shown at any width."""
    types = {name: _type(name, dtype) for name, dtype in frame.schema.items()}
    columns = [
        Column(title := _title(name, types), each, needed in (name, title))
        for name, each in types.items()
    ]
    return Table(columns, flat(frame).rows())


def _title(name: str, types: Mapping[str, Type]) -> str:
    """Leave the unit of a duration away; a kernel's time is not its name."""
    if types[name] != "duration":
        return name
    stem = name.removesuffix("_ns")
    return f"{stem} time" if stem in types or f"{stem}_name" in types else stem


def _type(name: str, dtype: pl.DataType) -> Type:
    if name == "event" or name.endswith("_event"):
        return "event"
    if name.endswith("_ns") and not name.endswith(_POINTS_IN_TIME):
        return "duration"
    if not dtype.is_numeric() and (name in _NAMES or name.endswith("_name")):
        return "name"
    if name.endswith("share") or name.startswith(("share_of_", "of_")):
        return "share"
    if dtype.is_numeric():
        return "number"
    return "flag" if str(dtype) == "Boolean" else "text"
