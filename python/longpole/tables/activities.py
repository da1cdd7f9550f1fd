"""Table `activities`: the GPU activities of a window, each with its launch and operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import polars as pl

from longpole.engine.windows import Window, window_of
from longpole.rows.frames import frame_of, row_bytes
from longpole.rows.selection import matching
from longpole.tables.catalogue import table
from longpole.tables.legends import AS_RECORDED, always
from longpole.tables.needs import ACTIVITIES
from longpole.trace import sweeps
from longpole.trace.kept import kept
from longpole.words.data import Row, names_of

if TYPE_CHECKING:
    from longpole.trace.trace import Trace

WorkClass = Literal["compute", "communication", "copy"]

NOTHING: Final = Window("time_range", None, 0, 0, "nothing has a duration")
"""Window for a trace in which no window can be chosen."""


class ActivityRow(Row):
    """A GPU activity. Unknown values are null."""

    event: int
    kind: str
    name: str
    operator_name: str | None
    """Innermost operator around the call."""
    duration_ns: int
    inside_ns: int
    """Part of its duration inside the window."""
    delay_ns: int | None
    """Time from the return of the call to the start; negative if it began before the call
    returned."""
    device: int | None
    stream: int | None
    call_name: str | None
    call: int | None
    """Runtime API call that launched it."""
    call_duration_ns: int | None
    operator: int | None
    work_class: WorkClass
    start_ns: int
    call_start_ns: int | None
    operator_start_ns: int | None
    correlation: int | None
    linked_by: str | None


@table(
    ActivityRow,
    needs=(ACTIVITIES,),
    empty="No GPU activity ran in it.",
    legend=((always, AS_RECORDED),),
)
def activities(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """List the kernels, memcpys and memsets that ran in a window, in part or whole.

    Returns
    -------
    DataFrame
        A row for each activity, in the order of the file.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(12, 60)).read()
    >>> activities(trace, where="name LIKE 'g%'").select("name", "inside_ns", "delay_ns").row(0)
    ('gemm', 48000, 2000)
    """
    window = window_of(trace, window)
    found = (
        _clipped(sweeps.activities(trace), NOTHING).clear()
        if window is None
        else _within(trace, window)
    )
    return matching(found, where).select(names_of(ActivityRow))


def own_activities(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """List the activities that belong to a window, as `activities` does.

    A step has those that were launched in it, whole (`inside_ns` is their duration), even if they
    run outside of it. Other windows have those that run in them.
    """
    window = window_of(trace, window)
    found = (
        _clipped(sweeps.activities(trace), NOTHING).clear()
        if window is None
        else _within(trace, window)
        if window.host is None
        else _launched_in(trace, window)
    )
    return matching(found, where).select(names_of(ActivityRow))


def own_events(trace: Trace, window: Window) -> pl.DataFrame:
    """Return the events of these activities, each with its time that counts (`inside_ns`)."""
    return frame_of(trace.core.belonging(window.span, window.on_host.span))


@kept
def _launched_in(trace: Trace, window: Window) -> pl.DataFrame:
    own = own_events(trace, window)
    found = sweeps.activities(trace)
    if len(own) < len(found):
        found = found.filter(pl.col("event").is_in(own["event"].implode()))
    columns = list(found.columns)
    columns.insert(columns.index("duration_ns") + 1, "inside_ns")
    return found.hstack([own["inside_ns"]]).select(columns)


def chosen(trace: Trace, window: Window, where: pl.Expr | str | None) -> bytes | None:
    """Return the rows of a trace's activities that match a condition; None for all of them.

    The rows are in the form that the core takes.
    """
    if where is None:
        return None
    return row_bytes(matching(_clipped(sweeps.activities(trace), window), where)["event"])


@kept
def _within(trace: Trace, window: Window) -> pl.DataFrame:
    """List all activities of a window, from which most questions start."""
    found = _clipped(sweeps.activities(trace), window)
    runs = found.select(_runs_in(window).alias("runs"))["runs"]
    return found if runs.all(ignore_nulls=False) else found.filter(runs)


def _runs_in(window: Window) -> pl.Expr:
    """Whether an event overlaps the window, or is an instant in it."""
    start_ns, duration_ns = pl.col("start_ns"), pl.col("duration_ns")
    is_instant = (duration_ns == 0) & start_ns.is_between(window.start_ns, window.end_ns)
    return (pl.col("inside_ns") > 0) | is_instant


def _clipped(found: pl.DataFrame, window: Window) -> pl.DataFrame:
    """Return activities with their time inside a window (0 outside) and their whole duration."""
    start_ns, duration_ns = pl.col("start_ns"), pl.col("duration_ns")
    end_ns = start_ns + duration_ns
    inside_ns = end_ns.clip(upper_bound=window.end_ns) - start_ns.clip(window.start_ns)
    known = pl.when(duration_ns >= 0).then(inside_ns.clip(0))
    columns = list(found.columns)
    columns.insert(columns.index("duration_ns") + 1, "inside_ns")
    return found.with_columns(inside_ns=known).select(columns)
