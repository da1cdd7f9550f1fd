"""Table `communication`: size, bandwidth and hidden share of each collective of a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longpole.engine.windows import window_of
from longpole.jobs.call_columns import bus_factor
from longpole.rows.frames import frame_of, row_bytes, typed
from longpole.rows.selection import matching
from longpole.tables.activities import own_events
from longpole.tables.catalogue import table
from longpole.tables.needs import COLLECTIVES
from longpole.trace import sweeps
from longpole.words.data import Row, names_of

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace


class CommunicationRow(Row):
    """A kernel or range of a communication library."""

    event: int
    name: str
    operation: str | None
    duration_ns: int
    """Whole duration, including parts outside the window and waits for other ranks."""
    exposed_ns: int
    """Part in which no compute kernel ran."""
    hidden_ns: int
    """Part in which a compute kernel ran on the device."""
    bytes: int | None
    """Size of the larger of the two buffers."""
    bus_gb_per_s: float | None
    """Link bandwidth, by the formulas of nccl-tests."""
    algorithm_gb_per_s: float | None
    """Bytes divided by duration, in 10^9 bytes per second; null if bytes, operation or group size
    are unknown."""
    group: str | None
    group_size: int | None
    device: int | None
    stream: int | None
    data_type: str | None
    named_by: str | None
    """How the operation was identified."""
    start_ns: int
    operator_name: str | None
    """Innermost operator around the call."""
    python: str | None
    """Innermost Python function around it outside torch."""


@table(
    CommunicationRow,
    needs_arguments=True,
    needs=(COLLECTIVES,),
    empty="No collective ran in it.",
)
def communication(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """List the collectives that ran in a window, in order of time.

    Parameters
    ----------
    trace
        The trace, read with the default `args`, and with Python stacks for `python`.
    where
        A condition on the columns.

    Returns
    -------
    DataFrame
        A row for each collective, in time order.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().launch("gemm", call=(0, 1), work=(1, 30))
    >>> builder = builder.launch("ncclDevKernel_AllReduce_Sum_f32", call=(1, 2), work=(20, 60))
    >>> communication(builder.read()).select("operation", "hidden_ns", "exposed_ns").row(0)
    ('all_reduce', 10000, 30000)
    """
    window = window_of(trace, window)
    # The number of an event is its row in `events`.
    told = trace.events.select("name", "device", "stream", "start_ns", "duration_ns")
    found = trace.collectives.hstack(told[trace.collectives["event"]])
    found = found.clear() if window is None else _of_window(trace, window, found)
    launched = sweeps.activities(trace).select("event", "work_class", "operator")
    compute = launched.filter(pl.col("work_class") == "compute")["event"]
    overlaps = trace.core.overlaps(row_bytes(found["event"]), row_bytes(compute))
    joined = found.join(frame_of(overlaps), on="event", how="left", maintain_order="left").join(
        launched, on="event", how="left", maintain_order="left"
    )
    rows = joined.with_columns(
        operator_name=trace.events["name"].gather(joined["operator"]),
        python=_python(trace, joined["call"]),
    )
    shown = (
        _measured(rows)
        .sort("start_ns", "device", "stream", "name", "event")
        .select(*names_of(CommunicationRow))
    )
    return typed(matching(shown, where))


def _of_window(trace: Trace, window: Window, found: pl.DataFrame) -> pl.DataFrame:
    """Return the collectives that belong to a window; those of the host, that run in it."""
    running = window.clip(found).drop("inside_ns")
    if window.host is None:
        return running
    works = sweeps.activities(trace)["event"].implode()
    own = own_events(trace, window)["event"].implode()
    event = pl.col("event")
    ran = event.is_in(running["event"].implode())
    return found.filter(event.is_in(own) | (ran & ~event.is_in(works)))


def _measured(rows: pl.DataFrame) -> pl.DataFrame:
    """Add bandwidths and exposed time."""
    rate = pl.when(pl.col("duration_ns") > 0).then(pl.col("bytes") / pl.col("duration_ns"))
    factor = bus_factor(pl.col("operation").cast(pl.String), pl.col("group_size"))
    return rows.with_columns(
        hidden_ns="overlap_ns",
        exposed_ns=pl.col("duration_ns") - pl.col("overlap_ns"),
        algorithm_gb_per_s=rate,
        bus_gb_per_s=rate * factor,
    )


def _python(trace: Trace, calls: pl.Series) -> pl.Series:
    """Find the user's Python function around each call."""
    around = sweeps.around(trace, calls, sweeps.own_frames(trace), "innermost")
    # The number of an event is its row in `events`.
    return trace.events["name"].gather(around)
