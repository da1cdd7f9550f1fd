"""The events that enclose others on the same thread or stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from longpole.rows.frames import frame_of, row_bytes

if TYPE_CHECKING:
    import polars as pl

    from longpole._core import Trace

    Core = Trace
NO_ROW: Final = 2**32 - 1
"""Represents null in rows passed to the core."""


def enclosing(
    core: Core, events: pl.Series, among: pl.Series, side: Literal["innermost", "outermost"]
) -> pl.Series:
    """Find, for each event, the event of `among` that encloses or equals it; null for null."""
    import polars as pl

    known = events.cast(pl.UInt32).fill_null(NO_ROW)
    is_outermost = side == "outermost"
    found = core.enclosing(row_bytes(known), row_bytes(among), outermost=is_outermost)
    return frame_of(found)["around"]
