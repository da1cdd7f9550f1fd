"""Table `breakdown`: compute, communication, copies and idle time of devices and streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import polars as pl

from longpole.engine.windows import window_of
from longpole.rows.frames import frame_schema
from longpole.tables.activities import chosen
from longpole.tables.activity_types import activity_types
from longpole.tables.catalogue import ask_by, table, view
from longpole.tables.concurrent_streams import concurrent_streams
from longpole.tables.legends import WHOLE_DEVICE, lacks
from longpole.tables.needs import ACTIVITIES
from longpole.trace import sweeps
from longpole.words.data import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_PARTS: Final = ("compute", "communication", "copy", "idle")
_HIDDEN: Final = ("communication", "copy")


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
    communication_total_ns: int
    """Time in which communication ran, hidden or exposed."""
    communication_hidden_share: float | None
    """Part of it that compute kernels hid; null without any."""
    copy_total_ns: int
    """Time in which copies ran."""
    copy_hidden_share: float | None
    """Part of it that kernels hid."""
    window_ns: int


@view(
    BreakdownRow,
    needs=(ACTIVITIES,),
    empty="No GPU activity ran in it.",
    legend=((lacks("stream"), WHOLE_DEVICE),),
)
def _by_stream(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    window = window_of(trace, window)
    if window is None:
        return pl.DataFrame(schema=frame_schema(BreakdownRow))
    span_ns = window.duration_ns
    shares = {
        f"{part}_share": pl.col(f"{part}_ns") / span_ns if span_ns else pl.lit(None, pl.Float64)
        for part in _PARTS
    }
    hidden = {
        f"{part}_hidden_share": 1 - pl.col(f"{part}_ns") / _if_any(f"{part}_total_ns")
        for part in _HIDDEN
    }
    rows = sweeps.busy(trace, window, chosen(trace, window, where))
    return rows.with_columns(window_ns=pl.lit(span_ns, pl.Int64), **shares, **hidden).select(
        *frame_schema(BreakdownRow)
    )


def _if_any(name: str) -> pl.Expr:
    return pl.when(pl.col(name) > 0).then(pl.col(name))


_BY: Final[Mapping[str, Callable[..., pl.DataFrame]]] = {
    "stream": _by_stream,
    "types": activity_types,
    "concurrency": concurrent_streams,
}


@table(by=_BY)
def breakdown(
    trace: Trace,
    window: Window | None = None,
    *,
    by: Literal["stream", "types", "concurrency"] = "stream",
    where: pl.Expr | str | None = None,
) -> pl.DataFrame:
    """Split a window by type of GPU activity, for each device and each of its streams.

    Time in which several activities run counts once: as compute, else communication, else copy.
    Synchronization records and annotations are not activities.

    Parameters
    ----------
    by
        `"stream"` has a row for each device, then one for each of its streams; `"types"` one for
        each device and set of types that ran at the same time, the longest first; `"concurrency"`
        one for each device and number of streams that were busy at once. Streams can be busy at
        once although their kernels share the device: what that costs is not measured.
    where
        A condition on the columns of `activities`; the others count as idle, and hide nothing.

    Raises
    ------
    ValueError
        `by` or the condition is invalid.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().launch("gemm", call=(0, 1), work=(1, 30))
    >>> trace = builder.launch("ncclAllReduce", call=(1, 2), work=(20, 60), stream=9).read()
    >>> shown = ("compute_ns", "communication_ns", "communication_hidden_share", "idle_ns")
    >>> breakdown(trace).select(shown).row(0)
    (29000, 30000, 0.25, 1000)
    >>> breakdown(trace, by="types").select("types", "duration_ns").row(0)
    ('communication', 30000)
    >>> breakdown(trace, by="concurrency").select("streams", "duration_ns").rows()
    [(0, 1000), (1, 49000), (2, 10000)]
    """
    return ask_by(_BY, by, trace, window, where=where)
