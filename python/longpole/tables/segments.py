"""Table `segments`: the critical path, segment by segment, and the slack of events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import polars as pl

from longpole.engine.windows import window_of
from longpole.formats.convert.flame import path_of
from longpole.rows.frames import frame_schema, typed
from longpole.rows.selection import matching
from longpole.tables.catalogue import ask_by, table, view
from longpole.words.data import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from longpole.engine.critical_path import CriticalPath
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace


class SegmentRow(Row):
    """A part of the critical path; the parts tile the window."""

    kind: str
    event: int | None
    """Null if the time is not that of an event."""
    name: str | None
    lane: int | None
    """Row in `Trace.lanes`."""
    start_ns: int
    duration_ns: int
    evidence: Literal["order", "correlation", "recorded", "replayed", "inferred", "none"]
    certainty: Literal["certain", "likely", "doubtful", "unknown"]
    """As in `CriticalPath.segments`."""
    rival: int | None
    """The other event that may be on the path instead."""
    busy_ns: int | None
    """For unexplained time, how long any device was busy during it."""


class SlackRow(Row):
    """An event of the window."""

    event: int
    slack_ns: int | None
    """How much later it can end without moving the end of the window; null if no dependency leads
    from it to the end."""
    kind: str
    name: str | None
    start_ns: int
    duration_ns: int | None


@view(SegmentRow, empty="The critical path is empty.")
def _by_segment(
    trace: Trace,
    window: Window | None,
    *,
    where: pl.Expr | str | None = None,
    critical_path: CriticalPath | None = None,
) -> pl.DataFrame:
    path = _path(trace, window, critical_path)
    rows = _no_rows(SegmentRow) if path is None else path.segments
    return matching(rows, where)


@view(SlackRow, empty="No event leads to its end.")
def _by_event(
    trace: Trace,
    window: Window | None,
    *,
    where: pl.Expr | str | None = None,
    critical_path: CriticalPath | None = None,
) -> pl.DataFrame:
    path = _path(trace, window, critical_path)
    if path is None:
        return _no_rows(SlackRow)
    names = trace.events.select("event", "kind", "name", "start_ns", "duration_ns")
    rows = path.slack.join(names, on="event").sort("slack_ns", "event", nulls_last=True)
    return matching(rows, where)


_BY: Final[Mapping[str, Callable[..., pl.DataFrame]]] = {"segment": _by_segment, "event": _by_event}


@table(by=_BY)
def segments(
    trace: Trace,
    window: Window | None = None,
    *,
    by: Literal["segment", "event"] = "segment",
    where: pl.Expr | str | None = None,
    critical_path: CriticalPath | None = None,
) -> pl.DataFrame:
    """List the parts of the critical path in time order, or the slack of each event.

    Parameters
    ----------
    by
        `"segment"` has a row for each part of the path, `"event"` one for each event of the window,
        the smallest slack first.
    where
        A condition on the columns of the result.
    critical_path
        The path, instead of that of the window.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 40)).read()
    >>> segments(trace).select("kind", "duration_ns").rows()[-1]
    ('kernel', 30000)
    >>> segments(trace, by="event").select("name", "slack_ns").row(0)
    ('cudaLaunchKernel', 0)
    """
    return ask_by(_BY, by, trace, window, where=where, critical_path=critical_path)


def _path(
    trace: Trace, window: Window | None, critical_path: CriticalPath | None
) -> CriticalPath | None:
    window = window_of(trace, window) if critical_path is None else window
    return path_of(trace, window) if critical_path is None and window else critical_path


def _no_rows(row: type) -> pl.DataFrame:
    dtypes = {
        **dict.fromkeys(("event", "lane", "rival"), pl.UInt32),
        **dict.fromkeys(("evidence", "certainty"), pl.Categorical),
    }
    schema = {name: dtypes.get(name, dtype) for name, dtype in frame_schema(row).items()}
    return typed(pl.DataFrame(schema=schema))
