"""Table `queue` by full: how long the launch queue of each stream was full."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longpole.engine.windows import window_of
from longpole.tables.catalogue import view
from longpole.tables.needs import ACTIVITIES, CALLS, LAUNCHES
from longpole.tables.queue_summary import timed_lengths
from longpole.trace.sweeps import FULL_QUEUE_OPERATIONS
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace


class FullQueueRow(Row):
    """How long a stream's launch queue was full."""

    device: int | None
    stream: int | None
    duration_ns: int
    """Time at or above `max_length`."""
    window_share: float
    longest: int
    """Maximum length reached."""


@view(
    FullQueueRow,
    needs=(ACTIVITIES, CALLS, LAUNCHES),
    empty="No GPU activity of it was launched by a recorded call.",
)
def full_queue(
    trace: Trace,
    window: Window | None = None,
    *,
    where: pl.Expr | str | None = None,
    max_length: int = FULL_QUEUE_OPERATIONS,
) -> pl.DataFrame:
    """Measure how long the launch queue of each stream was full.

    Parameters
    ----------
    max_length
        Number of activities from which a queue counts as full. A CUDA queue has 1,024 entries, some
        of which profilers do not show: full queues were seen with 1,022 activities, and the default
        allows for more hidden entries.

    Returns
    -------
    DataFrame
        A row for each stream that activities were launched on.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 1), work=(5, 20)).read()
    >>> full_queue(trace, max_length=1).select("duration_ns", "window_share", "longest").row(0)
    (5000, 0.25, 1)
    """
    window = window_of(trace, window)
    series = timed_lengths(trace, window, where)
    span_ns = 0 if window is None else window.duration_ns
    full_ns = pl.col("inside_ns").filter(pl.col("queue_length") >= max_length).sum()
    return (
        series.group_by("device", "stream")
        .agg(
            duration_ns=full_ns,
            window_share=full_ns / span_ns if span_ns else pl.lit(None, pl.Float64),
            longest=pl.col("queue_length").max(),
        )
        .sort("device", "stream")
    )
