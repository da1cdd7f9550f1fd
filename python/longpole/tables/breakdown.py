"""Table `breakdown`: compute, communication, copies and idle time of devices and streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.engine.windows import window_of
from longpole.rows.frames import frame_schema
from longpole.tables.activities import chosen
from longpole.tables.catalogue import table
from longpole.tables.legends import WHOLE_DEVICE, lacks
from longpole.tables.needs import ACTIVITIES
from longpole.trace import sweeps
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

__all__ = ["BreakdownRow", "breakdown"]

_PARTS: Final = ("compute", "communication", "copy", "idle")


class BreakdownRow(Row):
    """How a device or a stream spent the window.

    Compute, communication, copy and idle time sum to the window; shares are of the window.
    """

    device: int | None
    stream: int | None
    """Number of the stream; null for the device as a whole."""
    busy_ns: int
    compute_ns: int
    communication_ns: int
    """Time in which communication but no compute kernel ran (exposed)."""
    copy_ns: int
    """Time in which copies but no kernels ran (exposed)."""
    idle_ns: int
    idle_share: float | None
    """Null, like all shares, for a window of length 0."""
    compute_share: float | None
    communication_share: float | None
    copy_share: float | None
    count: int
    window_ns: int


@table(
    BreakdownRow,
    needs=(ACTIVITIES,),
    empty="No GPU activity ran in it.",
    legend=((lacks("stream"), WHOLE_DEVICE),),
)
def breakdown(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """Split a window by type of GPU activity, for each device and each of its streams.

    Time in which several activities run counts once: as compute, else communication, else copy.
    Synchronization records and annotations are not activities.

    Parameters
    ----------
    where
        A condition on the columns of `activities`; the others count as idle.

    Returns
    -------
    DataFrame
        A row for each device, then one for each of its streams.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 40)).read()
    >>> breakdown(trace).select("stream", "compute_ns", "idle_ns", "idle_share").row(0)
    (None, 30000, 10000, 0.25)
    """
    window = window_of(trace, window)
    if window is None:
        return pl.DataFrame(schema=frame_schema(BreakdownRow))
    span_ns = window.duration_ns
    shares = {
        f"{part}_share": pl.col(f"{part}_ns") / span_ns if span_ns else pl.lit(None, pl.Float64)
        for part in _PARTS
    }
    rows = sweeps.busy(trace, window, chosen(trace, window, where))
    return rows.with_columns(window_ns=pl.lit(span_ns, pl.Int64), **shares).select(
        *frame_schema(BreakdownRow)
    )
