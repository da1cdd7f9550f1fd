"""Adds columns to the calls of ranks: bandwidths, recorded waits, and causes.

Bandwidths follow NCCL's formulas, from the transfer time, not the kernel time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from longpole.jobs.reading import ReadRank

_ALIKE_BYTES: Final = 2
_SLOW_TRANSFER: Final = 1.5
_LEAST_BANDWIDTH_BYTES: Final = 64 << 10
_AROUND: Final = ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")
_ONCE: Final = ("broadcast", "reduce", "send", "recv", "send_receive")
_MOSTLY_WAITING: Final = 0.7
_MOSTLY_MOVING: Final = 0.3
_STILL_LATE: Final = 0.2


def bus_factor(operation: pl.Expr, n_ranks: pl.Expr) -> pl.Expr:
    """Return the factor from algorithm to bus bandwidth, as in doc/PERFORMANCE.md of nccl-tests.

    Bus bandwidth is comparable across numbers of ranks. Null if the operation or the number of
    ranks is not known.
    """
    import polars as pl

    around = pl.when(n_ranks > 0).then((n_ranks - 1) / n_ranks)
    return (
        pl.when(operation == "all_reduce")
        .then(2 * around)
        .when(operation.is_in(_AROUND))
        .then(around)
        .when(operation.is_in(_ONCE))
        .then(1.0)
    )


def with_bandwidth(frame: pl.DataFrame) -> pl.DataFrame:
    """Add bandwidths, and each transfer time relative to that of similar calls."""
    import polars as pl

    known = (
        pl.col("last").is_not_null()
        & (pl.col("bytes") >= _LEAST_BANDWIDTH_BYTES)
        & (pl.col("transfer_ns") > 0)
    )
    factor = bus_factor(pl.col("operation").cast(pl.String), pl.col("members"))
    size = (pl.col("bytes").cast(pl.Float64).log(_ALIKE_BYTES)).round(0)
    alike = pl.col("transfer_ns").median().over("operation", "group", size)
    return frame.with_columns(
        algorithm_gb_per_s=pl.when(known).then(pl.col("bytes") / pl.col("transfer_ns"))
    ).with_columns(
        bus_gb_per_s=pl.col("algorithm_gb_per_s") * factor,
        slow_transfer=pl.when(known).then(pl.col("transfer_ns") > _SLOW_TRANSFER * alike),
    )


def recorded_waits(read: Sequence[ReadRank], numbers: Sequence[int]) -> pl.DataFrame:
    """Return the recorded waits and transfers of the collectives, one row each.

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


def with_skew(frame: pl.DataFrame, then_late_ns: Sequence[int], *, bound_ns: int) -> pl.DataFrame:
    """Set the cause to start skew. `then_late_ns`: lateness if all ranks had begun together."""
    import polars as pl

    late = pl.Series("then_late_ns", then_late_ns, dtype=pl.Int64)
    is_skew = (
        pl.col("cause").is_in(["late arrival", "mixed"])
        & (late <= _STILL_LATE * pl.col("late_ns"))
        & (pl.col("late_ns") - late > bound_ns)
    )
    cause = pl.when(is_skew).then(pl.lit("start skew")).otherwise(pl.col("cause"))
    return frame.with_columns(cause=cause)
