"""Table `queue` by stream: length of the launch queue of each stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.engine.windows import window_of
from longpole.tables.catalogue import view
from longpole.tables.legends import always
from longpole.tables.needs import ACTIVITIES, CALLS, LAUNCHES
from longpole.tables.queue_length import queue_length
from longpole.tables.statistics import Figures, described

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_LEGEND: Final = (
    "mean to max are of the queue's length at its count changes, in activities; time_mean is over"
    " the time of the window."
)


class QueueSummaryRow(Figures):
    """Length of a stream's launch queue over a window."""

    device: int | None
    stream: int | None
    count: int
    """Number of rows by time: changes, and the length at the start of the window."""
    time_mean: float | None
    """Mean length, weighted by how long each length lasted in the window."""


@view(
    QueueSummaryRow,
    needs=(ACTIVITIES, CALLS, LAUNCHES),
    empty="No GPU activity of it was launched by a recorded call.",
    legend=((always, _LEGEND),),
)
def queue_summary(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """Describe how many activities were queued on each stream.

    Returns
    -------
    DataFrame
        A row for each stream.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 1), work=(5, 20)).read()
    >>> queue_summary(trace).select("max", "time_mean").row(0)
    (1, 0.25)
    """
    window = window_of(trace, window)
    series = timed_lengths(trace, window, where)
    weighted = (pl.col("queue_length") * pl.col("inside_ns")).sum()
    span_ns = 0 if window is None else window.duration_ns
    grouped = (
        series.group_by("device", "stream")
        .agg(
            "queue_length",
            count=pl.len().cast(pl.Int64),
            time_mean=weighted / span_ns if span_ns else pl.lit(None, pl.Float64),
        )
        .sort("device", "stream")
    )
    figures = described("queue_length", grouped["queue_length"])
    found = pl.concat([grouped.drop("queue_length"), figures], how="horizontal")
    return found.select("device", "stream", "count", *figures.columns, "time_mean")


def timed_lengths(trace: Trace, window: Window | None, where: pl.Expr | str | None) -> pl.DataFrame:
    """Return the rows of `queue_length`, and how long each lasted in the window as `inside_ns`."""
    series = queue_length(trace, window, where=where)
    if window is None:
        return series.with_columns(inside_ns=pl.lit(0, pl.Int64))
    bounds = window.start_ns, window.end_ns
    keys = ("device", "stream")
    goes_on = pl.all_horizontal(pl.col(key).eq_missing(pl.col(key).shift(-1)) for key in keys)
    next_ns = pl.col("time_ns").shift(-1)
    until_ns = pl.when(goes_on).then(next_ns).fill_null(window.end_ns).clip(*bounds)
    return series.with_columns(inside_ns=until_ns - pl.col("time_ns").clip(*bounds))
