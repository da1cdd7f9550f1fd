"""Table `copies` by time: memcpy and memset bandwidth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.rows.frames import argument
from longpole.rows.selection import matching
from longpole.tables.activities import own_activities
from longpole.tables.catalogue import view
from longpole.tables.needs import ACTIVITIES, COPIES
from longpole.trace.kept import kept
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_MOST_GB_PER_S: Final = 1e6
_DIRECTION: Final = r"^(Mem(?:cpy \w+|set))"


class CopyBandwidthRow(Row):
    """A change of the bandwidth of memcpys or memsets."""

    device: int | None
    name: str
    """The direction, such as `Memcpy HtoD` or `Memset`."""
    time_ns: int
    bandwidth_gb_per_s: float
    """Sum over concurrent copies from this time on, in 10^9 bytes per second."""


@view(
    CopyBandwidthRow,
    needs_arguments=True,
    needs=(ACTIVITIES, COPIES),
    empty="No memcpy or memset of known size ran in it.",
)
def copy_bandwidth(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """List the changes of the memcpy and memset bandwidth of each device.

    Parameters
    ----------
    where
        A condition on the columns of a memcpy or memset: those of `activities`,
        `direction`, `bytes` and `bandwidth_gb_per_s`.

    Returns
    -------
    DataFrame
        A row for each change, by device, direction and time. Copies whose bandwidth is not
        known do not change it.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().event(
    ...     ph="X", cat="gpu_memcpy", name="Memcpy HtoD (Pageable -> Device)", pid=0, tid=7,
    ...     ts=0, dur=2, args={"device": 0, "stream": 7, "bytes": 8000},
    ... )
    >>> copy_bandwidth(builder.read()).select("name", "time_ns", "bandwidth_gb_per_s").rows()
    [('Memcpy HtoD', 0, 4.0), ('Memcpy HtoD', 2000, 0.0)]
    """
    known = each_copy(trace, window, where=where).filter(pl.col("bandwidth_gb_per_s").is_not_null())
    rate = pl.col("bandwidth_gb_per_s")
    begin = known.select("device", name="direction", time_ns="start_ns", change=rate, event="event")
    end_ns = pl.col("start_ns") + pl.col("duration_ns")
    end = known.select("device", name="direction", time_ns=end_ns, change=-rate, event="event")
    # In integer units of 1e-9 GB/s, so that sums of additions and subtractions are exact.
    units = (pl.col("change") * 1e9).round().cast(pl.Int64)
    return (
        pl.concat([begin, end])
        .sort("device", "name", "time_ns", units, "event")
        .with_columns(total=units.cum_sum().over("device", "name"))
        .select("device", "name", "time_ns", bandwidth_gb_per_s=pl.col("total") / 1e9)
    )


def each_copy(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """List the memcpys and memsets of a window with their bytes and bandwidth.

    Returns
    -------
    DataFrame
        The columns of `activities`, `direction`, `bytes` and `bandwidth_gb_per_s` (as the
        profiler gives it, else bytes by duration; null without either, and above a petabyte a
        second, which no device reaches).
    """
    return matching(_all_copies(trace, window), where)


@kept
def _all_copies(trace: Trace, window: Window | None) -> pl.DataFrame:
    """List all memcpys and memsets of a window; cached, since several questions use them."""
    found = own_activities(trace, window).filter(pl.col("work_class") == "copy")
    joined = found.join(_sizes(trace), on="event", how="left", maintain_order="left")
    name = pl.col("name").cast(pl.String)
    measured = pl.when(pl.col("duration_ns") > 0).then(pl.col("bytes") / pl.col("duration_ns"))
    known = [
        pl.when(rate.is_between(0, _MOST_GB_PER_S)).then(rate)
        for rate in (pl.col("recorded_gb_per_s"), measured)
    ]
    return joined.with_columns(
        direction=pl.coalesce(name.str.extract(_DIRECTION, 1), name),
        bandwidth_gb_per_s=pl.coalesce(known),
    ).drop("recorded_gb_per_s")


def _sizes(trace: Trace) -> pl.DataFrame:
    """Return the bytes and the bandwidth that were recorded with events."""
    schema = {"event": pl.UInt32, "bytes": pl.Int64, "recorded_gb_per_s": pl.Float64}
    parts = [pl.DataFrame(schema=schema)]
    given = {"bytes": "bytes", "recorded_gb_per_s": "memory bandwidth (GB/s)"}
    for category in trace.categories:
        table = trace.args(category, [*given.values()])
        if table is None or table.width == 1:
            continue
        columns = [argument(table, key, schema[name]).alias(name) for name, key in given.items()]
        parts.append(table.select("event", *columns))
    return pl.concat(parts)
