"""Table `events`: all events of the trace that have a start time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longpole.analyses.catalogue import table
from longpole.selection import matching

if TYPE_CHECKING:
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["events"]


@table()
def events(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """List the events that ran in a window, in part or whole, in the order of the file.

    Parameters
    ----------
    window
        From `choose_window`; by default all events, including those without an end.
    where
        A condition on the columns of `Trace.events`.

    Returns
    -------
    DataFrame
        The columns of `Trace.events`. An instant is in the window that contains it. An event
        without an end is in every window that ends after its start.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(12, 60)).read()
    >>> events(trace, where="kind = 'kernel'")["name"].to_list()
    ['gemm']
    """
    found = trace.events
    if window is not None:
        start_ns, duration_ns = pl.col("start_ns"), pl.col("duration_ns")
        ends_behind = (start_ns + duration_ns > window.start_ns) | (start_ns >= window.start_ns)
        found = found.filter((start_ns < window.end_ns) & (ends_behind | duration_ns.is_null()))
    return matching(found, where)
