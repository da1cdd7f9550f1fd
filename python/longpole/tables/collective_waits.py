"""Table `collective_waits`: waiting and transfer time of collectives, and the awaited rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.engine.windows import window_of
from longpole.rows.selection import matching
from longpole.tables.catalogue import table
from longpole.words.data import Row

if TYPE_CHECKING:
    import polars as pl

    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace


class CollectiveWaitRow(Row):
    """A collective and its waits for peers."""

    event: int
    name: str
    start_ns: int
    duration_ns: int
    waiting_ns: int
    """Time in which it waits for a peer without transferring data."""
    moving_ns: int
    awaited_peer: int | None
    """Peer of the longest wait, by its index in the group."""
    awaited_ns: int | None
    """Length of the longest wait."""
    group_size: int | None
    """Minimum number of participating ranks."""


@table(
    CollectiveWaitRow,
    needs_arguments=True,
    empty="Only profiles of Ascend devices record the tasks of collectives; for"
    " other traces, `longpole ranks FOLDER` finds the awaited rank.",
    ignores_window=True,
)
def collective_waits(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """List the collectives that began in a window, if the profile contains their tasks.

    Profiles of Ascend devices do; for others the frame is empty.

    Parameters
    ----------
    where
        A condition on the columns.

    Returns
    -------
    DataFrame
        A row for each collective, in order of time.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("ncclAllReduce", call=(0, 1), work=(2, 4)).read()
    >>> collective_waits(trace).height
    0
    """
    chosen = window_of(trace, window)
    events = trace.events.select("event", "name", "start_ns", "duration_ns")
    found = events.join(trace.collective_waits, on="event").sort("start_ns", "event")
    if chosen is not None:
        found = chosen.starting(found)
    return matching(found, where)
