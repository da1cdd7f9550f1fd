"""Bandwidths of collectives by NCCL's formulas, from the transfer time, not the kernel time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

__all__ = ["bus_factor", "with_bandwidth"]

_ALIKE_BYTES: Final = 2
_SLOW_TRANSFER: Final = 1.5
_LEAST_BANDWIDTH_BYTES: Final = 64 << 10
_AROUND: Final = ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")
_ONCE: Final = ("broadcast", "reduce", "send", "recv", "send_receive")


def bus_factor(operation: pl.Expr, n_ranks: pl.Expr) -> pl.Expr:
    """Return the factor from algorithm to bus bandwidth, as in doc/PERFORMANCE.md of nccl-tests.

    Bus bandwidth is comparable across numbers of ranks. Null where the operation or the number of
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
