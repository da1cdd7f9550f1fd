"""Table `sync`: which call or stream waited for which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl

from longpole.engine.windows import window_of
from longpole.formats.convert.flame import path_of
from longpole.rows.frames import frame_schema, typed
from longpole.rows.selection import matching
from longpole.tables.activities import own_events
from longpole.tables.catalogue import table
from longpole.tables.needs import ACTIVITIES, CALLS
from longpole.trace import sweeps
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.engine.critical_path import CriticalPath
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace


class SyncRow(Row):
    """A wait of a call or stream."""

    source: int
    """The awaited event."""
    source_name: str | None
    source_external_id: int | None
    target: int
    """The waiting event."""
    target_name: str | None
    target_external_id: int | None
    kind: str
    evidence: Literal["order", "correlation", "recorded", "replayed", "inferred", "none"]
    waited: bool
    """Whether it had to wait."""
    on_path: bool
    """Whether the critical path follows the wait."""
    start_ns: int
    """Start of the waiting event."""
    duration_ns: int | None


@table(
    SyncRow,
    needs=(ACTIVITIES, CALLS),
    empty="No wait of a call or stream was recorded in it.",
)
def sync(
    trace: Trace,
    window: Window | None = None,
    *,
    where: pl.Expr | str | None = None,
    critical_path: CriticalPath | None = None,
) -> pl.DataFrame:
    """List which call or stream waited for which, in order of time.

    Parameters
    ----------
    where
        A condition on the columns of the result.
    critical_path
        The path, instead of that of the window.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 40))
    >>> trace = builder.call("cudaDeviceSynchronize", (12, 45)).read()
    >>> sync(trace).select("source_name", "target_name", "waited").row(0)
    ('gemm', 'cudaDeviceSynchronize', True)
    """
    if critical_path is None:
        window = window_of(trace, window)
        if window is None:
            return _no_rows()
        waits = _of_window(trace, window)
    else:
        waits = _timed(trace, critical_path.sync_dependencies)
    return matching(waits.sort("start_ns", "target", "source"), where)


def _of_window(trace: Trace, window: Window) -> pl.DataFrame:
    """Return the waits that belong to a window; of other windows than steps, that end in it.

    Those of calls belong to the step in whose host time they begin, those of streams to that which
    launched the waiting activity.
    """
    path = path_of(trace, window)
    if window.host is None or trace.window is None:
        return _timed(trace, path.sync_dependencies)
    waits = _timed(trace, path.sync_dependencies_in(trace.window))
    works = sweeps.activities(trace)["event"].implode()
    is_of_stream = pl.col("target").is_in(works)
    own = own_events(trace, window)["event"].implode()
    return pl.concat(
        [
            waits.filter(pl.col("target").is_in(own)),
            window.on_host.starting(waits.filter(~is_of_stream)),
        ]
    )


def _timed(trace: Trace, waits: pl.DataFrame) -> pl.DataFrame:
    """Add start and duration of the waiting events."""
    times = trace.events.select("start_ns", "duration_ns", target="event")
    return waits.join(times, on="target")


def _no_rows() -> pl.DataFrame:
    dtypes = {
        **dict.fromkeys(("source", "target"), pl.UInt32),
        **dict.fromkeys(("source_name", "target_name", "evidence"), pl.Categorical),
    }
    return typed(pl.DataFrame(schema={**frame_schema(SyncRow), **dtypes}))
