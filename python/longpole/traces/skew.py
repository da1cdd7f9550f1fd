"""Calls whose last rank is late only because its recording began late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

__all__ = ["with_skew"]

_STILL_LATE: Final = 0.2


def with_skew(frame: pl.DataFrame, then_late_ns: Sequence[int], *, bound_ns: int) -> pl.DataFrame:
    """Set their cause. `then_late_ns`: lateness of last ranks if all began recording together."""
    import polars as pl

    late = pl.Series("then_late_ns", then_late_ns, dtype=pl.Int64)
    is_skew = (
        pl.col("cause").is_in(["late arrival", "mixed"])
        & (late <= _STILL_LATE * pl.col("late_ns"))
        & (pl.col("late_ns") - late > bound_ns)
    )
    cause = pl.when(is_skew).then(pl.lit("start skew")).otherwise(pl.col("cause"))
    return frame.with_columns(cause=cause)
