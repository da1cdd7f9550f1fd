"""Table `queue`: activities that were launched and have not started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from longpole.tables.catalogue import ask_by, table
from longpole.tables.full_queue import full_queue
from longpole.tables.queue_length import queue_length
from longpole.tables.queue_summary import queue_summary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_BY: Final[Mapping[str, Callable[..., pl.DataFrame]]] = {
    "stream": queue_summary,
    "time": queue_length,
    "full": full_queue,
}


@table(by=_BY)
def queue(
    trace: Trace,
    window: Window | None = None,
    *,
    by: Literal["stream", "time", "full"] = "stream",
    where: pl.Expr | str | None = None,
    max_length: int | None = None,
) -> pl.DataFrame:
    """Describe how many activities were queued on each stream.

    An activity is queued from the start of the call that launches it to its own start.

    Parameters
    ----------
    by
        `"stream"` has a row for each stream with statistics of its queue, `"time"` one for each
        change of a queue, `"full"` one for each stream with the time in which its queue was full.
    max_length
        Number of activities from which a queue counts as full, for `by="full"`: 1,022 by default,
        because a CUDA queue has 1,024 entries, some of which profilers do not show.

    Raises
    ------
    ValueError
        `by` or the condition is invalid.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 1), work=(5, 20)).read()
    >>> queue(trace).select("max", "time_mean").row(0)
    (1, 0.25)
    >>> queue(trace, by="time").select("time_ns", "queue_length").rows()
    [(0, 1), (5000, 0)]
    """
    return ask_by(_BY, by, trace, window, where=where, max_length=max_length)
