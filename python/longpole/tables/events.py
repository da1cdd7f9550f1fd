"""Table `events`: all events of the trace that have a start time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.rows.selection import matching
from longpole.tables.catalogue import table
from longpole.tables.legends import AS_RECORDED, always

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_NEIGHBOURS: Final = 2
_MOST_LAUNCHED: Final = 10
_SHOWN: Final = (
    *("event", "relation", "kind", "name", "duration_ns", "thread", "device", "stream"),
    *("start_ns", "correlation", "parent", "depth", "lane"),
)


@table(
    empty="No event lies in it.",
    legend=((always, AS_RECORDED),),
    is_of_host=True,
)
def events(
    trace: Trace,
    window: Window | None = None,
    *,
    where: pl.Expr | str | None = None,
    around: int | None = None,
) -> pl.DataFrame:
    """List the events that ran in a window, in part or whole, in the order of the file.

    Parameters
    ----------
    window
        From `choose_window`; by default all events, including those without an end.
    where
        A condition on the columns of `Trace.events`.
    around
        The number of an event, as answers print it: only this event, those that enclose it or its
        launch, its neighbours, and what it launched, in the whole trace.

    Returns
    -------
    DataFrame
        The columns of `Trace.events`; around an event some of them, and its `relation` to each. An
        instant is in the window that contains it. An event without an end is in every window that
        ends after its start.

    Raises
    ------
    ValueError
        The condition is invalid, or the trace has no event of this number.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(12, 60)).read()
    >>> events(trace, where="kind = 'kernel'")["name"].to_list()
    ['gemm']
    >>> events(trace, around=1).select("relation", "name").rows()
    [('enclosing', 'cudaLaunchKernel'), ('itself', 'gemm')]
    """
    if around is not None:
        return matching(_around(trace, around), where)
    found = trace.events
    if window is not None:
        start_ns, duration_ns = pl.col("start_ns"), pl.col("duration_ns")
        ends_behind = (start_ns + duration_ns > window.start_ns) | (start_ns >= window.start_ns)
        found = found.filter((start_ns < window.end_ns) & (ends_behind | duration_ns.is_null()))
    return matching(found, where)


def _around(trace: Trace, number: int) -> pl.DataFrame:
    """Return an event and the events related to it."""
    is_it = pl.col("event") == number
    related = trace.stack_of(number).filter(~is_it).select("event", "relation")
    found = trace.events
    it = found.filter(is_it)
    alike = pl.lit(it["parent"][0], found.schema["parent"])
    siblings = found.filter(
        ~is_it, pl.col("lane") == it["lane"][0], pl.col("parent").eq_missing(alike)
    ).sort("start_ns", "event")
    is_before = pl.col("start_ns") < it["start_ns"][0]
    launched = trace.launches.filter((pl.col("call") == number) | (pl.col("operator") == number))
    parts = [
        (None, related),
        ("before", siblings.filter(is_before).tail(_NEIGHBOURS)),
        ("itself", it),
        ("after", siblings.filter(~is_before).head(_NEIGHBOURS)),
        ("launches", launched.head(_MOST_LAUNCHED)),
    ]
    rows = pl.concat(
        part.select("event", relation=pl.lit(name) if name else pl.col("relation"))
        for name, part in parts
    )
    return rows.join(found, on="event", how="left", maintain_order="left").select(_SHOWN)
