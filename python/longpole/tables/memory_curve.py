"""Table `memory` by time: allocated and reserved memory after each change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longpole.formats.ascend.memory import recorded_memory
from longpole.formats.xplane.memory import recorded_memory as xplane_memory
from longpole.rows.selection import matching
from longpole.tables.catalogue import view
from longpole.tables.needs import ALLOCATIONS
from longpole.trace.allocations import Allocations, trace_allocations
from longpole.trace.kept import kept
from longpole.words.data import Row, names_of

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace


class MemoryCurveRow(Row):
    """A change of a device's memory. Values that were not recorded are null."""

    device: str
    offset_ns: int | None
    """Time of the change from the start of the recording; null if before the recording."""
    change: str
    """`allocated`, `freed`, `preexisting`, `recategorized` or `reserved`."""
    n_bytes: int
    """Change in bytes; negative if memory shrinks."""
    allocated_bytes: int
    """Allocated bytes after the change."""
    reserved_bytes: int | None
    """Reserved bytes after the change."""
    category: str | None
    """Category of the memory timeline."""
    operator: str | None
    """Operator that ran at that time."""
    function: str | None
    inside: int | None
    """Innermost event that ran at that time; `Trace.stack_of` gives its stack."""
    event: int | None
    time_ns: int | None


@view(
    MemoryCurveRow,
    needs_arguments=True,
    needs=(ALLOCATIONS,),
    empty="No memory was allocated or freed in it.",
    is_of_host=True,
)
def memory_curve(
    recording: Trace | Allocations,
    window: Window | None = None,
    *,
    where: pl.Expr | str | None = None,
) -> pl.DataFrame:
    """List every change of the memory of each device, in order of time.

    Parameters
    ----------
    window
        Only changes in this window; by default the whole recording.
    where
        Changes to list: a polars expression or an SQL condition on the columns.

    Returns
    -------
    DataFrame
        A row for each change, in order of time.

    Raises
    ------
    ValueError
        The condition is invalid.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> memory = {"Bytes": 8, "Total Allocated": 8, "Device Type": 0, "Device Id": -1}
    >>> event = {"ph": "i", "name": "[memory]", "cat": "cpu_instant_event", "ts": 1}
    >>> trace = TraceBuilder().event(**event, pid=1, tid=1, args=memory).read()
    >>> memory_curve(trace).select("device", "n_bytes", "allocated_bytes").row(0)
    ('cpu', 8, 8)
    """
    offset_ns = pl.col("time_ns") - start_of(recording)
    columns = names_of(MemoryCurveRow)
    events = allocations_of(recording).events.with_columns(offset_ns=offset_ns).select(columns)
    if window is not None:
        start_ns, end_ns = window.start_ns, window.end_ns
        events = events.filter(pl.col("time_ns").is_between(start_ns, end_ns, closed="left"))
    return matching(events, where)


def start_of(recording: Trace | Allocations) -> int | None:
    """Return the start of a trace, or the first change in a memory file; None if it has none."""
    if not isinstance(recording, Allocations):
        return None if recording.window is None else recording.window[0]
    return min(recording.events["time_ns"].drop_nulls().to_list(), default=None)


def allocations_of(recording: Trace | Allocations) -> Allocations:
    """Return the allocations of a trace, including those in files of its profile."""
    return recording if isinstance(recording, Allocations) else _of_trace(recording)


@kept
def _of_trace(trace: Trace) -> Allocations:
    found = trace_allocations(trace)
    if not found.events.is_empty():
        return found
    if trace.core.profiler in ("torch_npu", "mindspore", "msprof"):
        return recorded_memory(trace.path) or found
    return xplane_memory(trace) or found
