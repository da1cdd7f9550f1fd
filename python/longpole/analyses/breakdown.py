"""Table `breakdown`: how each device and stream spent a window: computing, copying, idle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole import sweeps
from longpole.analyses.activities import chosen
from longpole.windows import window_of

if TYPE_CHECKING:
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["breakdown"]

_PARTS: Final = ("compute", "communication", "copy", "idle")
_SCHEMA: Final = pl.Schema(
    {
        "device": pl.Int32,
        "stream": pl.Int64,
        "count": pl.Int64,
        "window_ns": pl.Int64,
        "busy_ns": pl.Int64,
        **{f"{part}_ns": pl.Int64 for part in _PARTS},
        **{f"{part}_share": pl.Float64 for part in _PARTS},
    }
)


def breakdown(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """Split a window of each device, and of each of its streams, by what ran.

    Time in which several activities run counts once, for the first of compute,
    communication and copy; records of synchronisation and annotations are no activities.

    Parameters
    ----------
    trace
        The trace.
    window
        From `choose_window`; by default the window that it chooses without more.
    where
        A condition on the columns of `activities`; the others count as idle.

    Returns
    -------
    DataFrame
        A row for each device (`stream` is null), then one for each of its streams: `count`
        of activities, `window_ns`, `busy_ns`, `compute_ns`, `communication_ns` (exposed:
        nothing computed meanwhile), `copy_ns` (exposed: no kernel ran meanwhile) and
        `idle_ns`, which sum to the window, and the `..._share` of each in the window.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 40)).read()
    >>> breakdown(trace).select("stream", "compute_ns", "idle_ns", "idle_share").row(0)
    (None, 30000, 10000, 0.25)
    """
    window = window_of(trace, window)
    if window is None:
        return pl.DataFrame(schema=_SCHEMA)
    span_ns = window.duration_ns
    shares = {
        f"{part}_share": pl.col(f"{part}_ns") / span_ns if span_ns else pl.lit(None, pl.Float64)
        for part in _PARTS
    }
    rows = sweeps.busy(trace, window, chosen(trace, window, where))
    return rows.with_columns(window_ns=pl.lit(span_ns, pl.Int64), **shares).select(*_SCHEMA)
