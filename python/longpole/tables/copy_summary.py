"""Table `copies` by direction: bytes, time and bandwidth of memcpys and memsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.tables.catalogue import view
from longpole.tables.copy_bandwidth import copy_bandwidth, each_copy
from longpole.tables.legends import always
from longpole.tables.needs import ACTIVITIES, COPIES
from longpole.tables.statistics import Figures, spread

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_LEGEND: Final = (
    "bandwidth_gb_per_s is bytes over duration; mean to max are of the bandwidth over time, between"
    " its n_changes changes, also in GB/s."
)


class CopySummaryRow(Figures):
    """All memcpys and memsets of one direction on one device."""

    device: int | None
    name: str
    """The direction, such as `Memcpy HtoD` or `Memset`."""
    count: int
    n_without_size: int
    bytes: int | None
    duration_ns: int
    """Sum of the parts inside the window."""
    bandwidth_gb_per_s: float | None
    """Bytes divided by duration, for activities with a known size, in 10^9 bytes per second."""
    n_changes: int | None
    """Number of rows by time with a bandwidth above 0, from which `mean` to `max` (in 10^9
    bytes per second) are computed.
    """


@view(
    CopySummaryRow,
    needs_arguments=True,
    needs=(ACTIVITIES, COPIES),
    empty="No memcpy or memset ran in it.",
    legend=((always, _LEGEND),),
)
def copy_summary(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """Sum the memcpys and memsets of a window by device and direction.

    Parameters
    ----------
    where
        As for `copy_bandwidth`.

    Returns
    -------
    DataFrame
        A row for each device and direction.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("Memset (Device)", call=(0, 1), work=(2, 4)).read()
    >>> copy_summary(trace).select("name", "count", "n_without_size", "bytes").row(0)
    ('Memset', 1, 1, None)
    """
    series = copy_bandwidth(trace, window, where=where).filter(pl.col("bandwidth_gb_per_s") > 0)
    changes = series.group_by("device", "name").agg(
        n_changes=pl.len().cast(pl.Int64), **spread("bandwidth_gb_per_s")
    )
    has_size = pl.col("bytes").is_not_null() & (pl.col("duration_ns") > 0)
    summed = pl.col("bytes").filter(has_size).sum() / pl.col("duration_ns").filter(has_size).sum()
    return (
        each_copy(trace, window, where=where)
        .group_by("device", name="direction")
        .agg(
            count=pl.len().cast(pl.Int64),
            n_without_size=pl.col("bytes").null_count().cast(pl.Int64),
            bytes=pl.when(pl.col("bytes").count() > 0).then(pl.col("bytes").sum()),
            duration_ns=pl.col("inside_ns").sum(),
            bandwidth_gb_per_s=pl.when(has_size.any()).then(summed),
        )
        .join(changes, on=["device", "name"], how="left", nulls_equal=True)
        .sort("device", "name")
    )
