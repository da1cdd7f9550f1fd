"""Bandwidths of calls, by NCCL's formulas, from the transfer and never from the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

__all__ = ["with_bandwidth"]

_ALIKE_BYTES: Final = 2
_SLOW_TRANSFER: Final = 1.5
_LEAST_BANDWIDTH_BYTES: Final = 64 << 10
_BUS_FACTOR: Final = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
}


def with_bandwidth(frame: pl.DataFrame) -> pl.DataFrame:
    """Add bandwidths, and how the transfer compares to those of calls alike."""
    import polars as pl

    known = (
        pl.col("last").is_not_null()
        & (pl.col("bytes") >= _LEAST_BANDWIDTH_BYTES)
        & (pl.col("transfer_ns") > 0)
    )
    names = frame["operation"].cast(pl.String)
    factors = [
        _BUS_FACTOR[name](n) if name in _BUS_FACTOR and n > 1 else 1.0
        for name, n in zip(names, frame["members"], strict=True)
    ]
    size = (pl.col("bytes").cast(pl.Float64).log(_ALIKE_BYTES)).round(0)
    alike = pl.col("transfer_ns").median().over("operation", "group", size)
    return frame.with_columns(
        algorithm_gb_per_s=pl.when(known).then(pl.col("bytes") / pl.col("transfer_ns"))
    ).with_columns(
        bus_gb_per_s=pl.col("algorithm_gb_per_s") * pl.Series(factors, dtype=pl.Float64),
        slow_transfer=pl.when(known).then(pl.col("transfer_ns") > _SLOW_TRANSFER * alike),
    )
