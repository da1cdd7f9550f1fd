"""Table `queue_length`: how many launched activities waited to start, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole import sweeps
from longpole.analyses.activities import activities
from longpole.kept import kept
from longpole.windows import choose_window

if TYPE_CHECKING:
    import polars as pl

    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["queue_length"]


def queue_length(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """List the changes of the number of activities that wait on each stream.

    An activity waits from the start of the call that launches it to its own start. Those
    that were launched before the window and ran in it count from the window's first row on.

    Parameters
    ----------
    trace
        The trace.
    window
        From `choose_window`; by default the window that it chooses without more.
    where
        A condition on the columns of `activities`.

    Returns
    -------
    DataFrame
        A row for each change, by device, stream and time: `device`, `stream`, `time_ns`,
        `event` (the call, or the activity that began) and `queue_length` from then on. Where
        one leaves the queue as another joins it, the leaving comes first.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().launch("gemm", call=(0, 1), work=(10, 20))
    >>> trace = builder.launch("add", call=(5, 6), work=(20, 30)).read()
    >>> queue_length(trace).select("time_ns", "queue_length").rows()
    [(0, 1), (5000, 2), (10000, 1), (20000, 0)]
    """
    window = window or choose_window(trace)
    if where is None:
        return _all(trace, window)
    return sweeps.queues(trace, activities(trace, window, where=where)["event"])


@kept
def _all(trace: Trace, window: Window | None) -> pl.DataFrame:
    """List the changes by all activities of a window, which three questions ask for."""
    return sweeps.queues(trace, activities(trace, window)["event"])
