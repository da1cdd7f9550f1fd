"""Frames as rows for people and programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.cli.output import markdown_table
from longpole.cli.terminal import Column
from longpole.wording import duration, share, short_name

if TYPE_CHECKING:
    import polars as pl

    from longpole.cli.output import Record
    from longpole.cli.terminal import Terminal

__all__ = ["markdown_of", "records_of", "text_of"]

_WIDEST_NAME: Final = 32  # where a row names two events


def records_of(path: str, frame: pl.DataFrame) -> list[Record]:
    """Give every row with the input it comes from."""
    return [{"path": path, **row} for row in frame.iter_rows(named=True)]


def text_of(frame: pl.DataFrame, terminal: Terminal) -> list[str]:
    """Align a frame for the terminal, times and shares in words."""
    numeric = [dtype.is_numeric() for dtype in frame.dtypes]
    columns = [
        Column(_title(name), "right" if is_number else "left", has_names=name == "name")
        for name, is_number in zip(frame.columns, numeric, strict=True)
    ]
    return terminal.table(columns, _cells(frame)) if frame.height else ["  (no rows)"]


def markdown_of(frame: pl.DataFrame) -> list[str]:
    """Write a frame as a table in Markdown."""
    sides = ["right" if dtype.is_numeric() else "left" for dtype in frame.dtypes]
    return markdown_table([_title(name) for name in frame.columns], _cells(frame), sides)


def _cells(frame: pl.DataFrame) -> list[list[str]]:
    return [
        [_cell(name, value) for name, value in zip(frame.columns, row, strict=True)]
        for row in frame.iter_rows()
    ]


def _cell(column: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and column in {"duration_ns", "makespan_ns", "gain_ns"}:
        return duration(value)
    if isinstance(value, float):
        return share(value)
    return short_name(value, _WIDEST_NAME) if column.endswith("_name") else str(value)


def _title(column: str) -> str:
    return (
        column.removesuffix("_ns")
        if column.endswith(("duration_ns", "span_ns", "gain_ns"))
        else column
    )
