"""Table `queue` by time: number of launched activities that have not started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.engine.windows import window_of
from longpole.rows.frames import frame_of
from longpole.tables.activities import NOTHING, chosen
from longpole.tables.catalogue import view
from longpole.tables.needs import ACTIVITIES, CALLS, LAUNCHES
from longpole.trace.kept import kept
from longpole.words.data import Row

if TYPE_CHECKING:
    import polars as pl

    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace


class QueueLengthRow(Row):
    """A change in the length of a stream's queue."""

    device: int | None
    stream: int | None
    time_ns: int
    event: int
    """The call, or the activity that started."""
    queue_length: int
    """Length from this time on."""


@view(
    QueueLengthRow,
    needs=(ACTIVITIES, CALLS, LAUNCHES),
    empty="No GPU activity of it was launched by a recorded call.",
)
def queue_length(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """List the changes of the number of activities queued on each stream.

    An activity is queued from the start of the call that launches it to its own start. All that are
    queued at some time in the window count, whether or not they run in it.

    Parameters
    ----------
    where
        A condition on the columns of `activities`, for activities in and outside the window.

    Returns
    -------
    DataFrame
        A row for each change, by device, stream and time. If one activity leaves the queue at the
        time another joins it, leaving comes first. If activities are queued at the start of the
        window, the first row has that time and the last event before it.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().launch("gemm", call=(0, 1), work=(10, 20))
    >>> trace = builder.launch("add", call=(5, 6), work=(20, 30)).read()
    >>> queue_length(trace).select("time_ns", "queue_length").rows()
    [(0, 1), (5000, 2), (10000, 1), (20000, 0)]
    """
    window = window_of(trace, window)
    if window is None:
        return frame_of(trace.core.queues(NOTHING.span)).clear()
    if where is None:
        return _all(trace, window)
    return frame_of(trace.core.queues(window.span, chosen(trace, window, where)))


@kept
def _all(trace: Trace, window: Window) -> pl.DataFrame:
    """List the queue lengths of all activities; cached, since three functions use them."""
    return frame_of(trace.core.queues(window.span))
