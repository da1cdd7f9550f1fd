"""Table `breakdown` by concurrency: how many streams were busy at once, and how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longpole.engine.windows import window_of
from longpole.rows.frames import frame_schema
from longpole.tables.activities import activities, chosen
from longpole.tables.catalogue import view
from longpole.tables.needs import ACTIVITIES
from longpole.trace import sweeps
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace


class ConcurrentStreamsRow(Row):
    """Time in which exactly this number of streams of a device were busy."""

    device: int | None
    streams: int
    """0 if the device was idle."""
    duration_ns: int
    busy_share: float | None
    """Share of the time in which any stream was busy; null for 0 streams."""
    window_share: float


@view(
    ConcurrentStreamsRow,
    needs=(ACTIVITIES,),
    empty="No GPU activity ran in it.",
)
def concurrent_streams(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """Measure how long 0, 1, 2 and more streams of each device were busy at the same time.

    A stream is busy while one of its activities runs, however many run there. Streams can be busy
    at once although their kernels share the device: what that costs is not measured.

    Returns
    -------
    DataFrame
        A row for each device and number of streams. The durations of a device sum to the window.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().launch("gemm", call=(0, 1), work=(1, 30))
    >>> trace = builder.launch("add", call=(1, 2), work=(20, 60), stream=9).read()
    >>> concurrent_streams(trace).select("streams", "duration_ns").rows()
    [(0, 1000), (1, 49000), (2, 10000)]
    """
    window = window_of(trace, window)
    if window is None:
        return pl.DataFrame(schema=frame_schema(ConcurrentStreamsRow))
    devices = sweeps.busy(trace, window, chosen(trace, window, where))["device"].unique()
    busy = _busy_parts(activities(trace, window, where=where), window)
    edges = [busy.select("device", time_ns="begin_ns", change=1)]
    edges += [busy.select("device", time_ns="end_ns", change=-1)]
    for time_ns in window.span:
        edges.append(pl.select(device=devices, time_ns=pl.lit(time_ns), change=0))
    duration_ns = pl.col("duration_ns")
    is_busy = pl.col("streams") > 0
    busy_ns = duration_ns.filter(is_busy).sum().over("device")
    return (
        pl.concat(edges, how="vertical_relaxed")
        .group_by("device", "time_ns")
        .agg(pl.col("change").sum())
        .sort("device", "time_ns")
        .with_columns(
            streams=pl.col("change").cum_sum().over("device").cast(pl.Int64),
            duration_ns=pl.col("time_ns").diff().shift(-1).over("device"),
        )
        .group_by("device", "streams")
        .agg(duration_ns.sum())
        .filter(duration_ns > 0)
        .with_columns(
            busy_share=pl.when(is_busy).then(duration_ns / busy_ns),
            window_share=duration_ns / window.duration_ns,
        )
        .sort("device", "streams")
        .select(*frame_schema(ConcurrentStreamsRow))
    )


def _busy_parts(found: pl.DataFrame, window: Window) -> pl.DataFrame:
    """Return disjoint parts of a window that cover the time in which each stream was busy."""
    begin_ns, end_ns = pl.col("begin_ns"), pl.col("end_ns")
    before_ns = end_ns.cum_max().shift(1).over("device", "stream")
    return (
        found.with_columns(begin_ns=pl.col("start_ns").clip(window.start_ns))
        .with_columns(end_ns=begin_ns + pl.col("inside_ns"))
        .sort("device", "stream", "begin_ns")
        .with_columns(begin_ns=pl.max_horizontal(begin_ns, before_ns))
        .filter(begin_ns < end_ns)
    )
