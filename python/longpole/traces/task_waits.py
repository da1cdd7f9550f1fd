"""Waiting inside collectives as recorded by each rank: Ascend profiles show the tasks inside.

Such a rank shows how long it waited, and for which peer, even if the other ranks have no trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from longpole.traces.reading import ReadRank

__all__ = ["recorded_waits", "with_recorded", "with_recorded_cause"]

_MOSTLY_WAITING: Final = 0.7
_MOSTLY_MOVING: Final = 0.3


def recorded_waits(read: Sequence[ReadRank], numbers: Sequence[int]) -> pl.DataFrame:
    """Return the recorded waits and transfers of the collectives, one row for each.

    Columns: `rank`, `event`, `recorded_wait_ns`, `moving_ns`, `awaited` (the peer of the longest
    wait, by its index in the group), `awaited_ns`.
    """
    import polars as pl

    rows: list[tuple[Any, ...]] = [
        (number, *wait) for number, rank in zip(numbers, read, strict=True) for wait in rank.waits
    ]
    schema = {
        "rank": pl.Int64,
        "event": pl.UInt32,
        "recorded_wait_ns": pl.Int64,
        "moving_ns": pl.Int64,
        "awaited": pl.Int64,
        "awaited_ns": pl.Int64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def with_recorded(
    members: pl.DataFrame, waits: pl.DataFrame, unknown_last: pl.Series
) -> pl.DataFrame:
    """Use the recorded waits and transfers in calls whose last rank is not known."""
    import polars as pl

    joined = members.join(waits, on=["rank", "event"], how="left", maintain_order="left")
    is_recorded = pl.col("call").is_in(unknown_last.implode()) & pl.col("moving_ns").is_not_null()
    awaited = [pl.when(is_recorded).then(name).alias(name) for name in ("awaited", "awaited_ns")]
    return joined.with_columns(
        *awaited,
        wait_ns=pl.when(is_recorded).then("recorded_wait_ns").otherwise("wait_ns"),
        transfer_ns=pl.when(is_recorded).then("moving_ns").otherwise("transfer_ns"),
    ).drop("recorded_wait_ns", "moving_ns")


def with_recorded_cause(calls: pl.DataFrame) -> pl.DataFrame:
    """Set the cause of long calls whose last rank is not known, where `wait_share` is."""
    import polars as pl

    share = pl.col("wait_share")
    said = (
        pl.when(share >= _MOSTLY_WAITING)
        .then(pl.lit("late arrival"))
        .when(share <= _MOSTLY_MOVING)
        .then(pl.lit("transfer"))
        .otherwise(pl.lit("mixed"))
    )
    is_recorded = pl.col("last").is_null() & share.is_not_null()
    return calls.with_columns(cause=pl.when(is_recorded).then(said).otherwise(pl.col("cause")))
