"""Table `idle` by host: what the host did while each device waited for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longpole.engine.windows import window_of
from longpole.rows.frames import frame_schema, typed
from longpole.tables.catalogue import view
from longpole.tables.host_pieces import BETWEEN, device_gaps, host_pieces, host_spans
from longpole.tables.needs import ACTIVITIES, CALLS, LAUNCHES
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace


class HostWhileIdleRow(Row):
    """An event of a launching thread that ran while a device was idle."""

    device: int | None
    kind: str
    """Kind of the event, as in `events`; `host_gap` for time in no operator, call, function or
    annotation of the program."""
    name: str
    """Operator, function, call or annotation; for a `host_gap`, the events before and after it."""
    count: int
    """Number of events or gaps of this name."""
    duration_ns: int
    """Idle time during which the event ran and nothing nested in it did; all rows of a device sum
    to the time in which it waited for launches."""
    share_of_idle: float
    """Share of all idle time of the device."""
    window_share: float
    event: int | None
    """The event with most of that time; of a `host_gap`, the first event after it."""


@view(
    HostWhileIdleRow,
    needs=(ACTIVITIES, CALLS, LAUNCHES),
    empty="No device waited for a launch in it; `idle` lists other causes.",
)
def host_while_idle(trace: Trace, window: Window | None = None) -> pl.DataFrame:
    """Measure what the host did while each device was idle and the next launch had not returned.

    An idle interval counts on the thread that launched the activity that ended it, until this
    launch returned. The other causes of idle time are in the table by
    cause.

    Returns
    -------
    DataFrame
        A row for each device and each name of events, most idle time first.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().launch("gemm", call=(0, 1), work=(2, 10))
    >>> builder = builder.operator("aten::add", (20, 40))
    >>> trace = builder.launch("add", call=(30, 35), work=(40, 50)).read()
    >>> host_while_idle(trace).select("name", "duration_ns").rows()
    [('aten::add', 10000), ('between cudaLaunchKernel and aten::add', 10000), \
('cudaLaunchKernel', 6000)]
    """
    schema = frame_schema(HostWhileIdleRow) | {"event": pl.UInt32}
    window = window_of(trace, window)
    if window is None:
        return typed(pl.DataFrame(schema=schema))
    gaps = device_gaps(trace, window)
    devices = gaps.partition_by("device", as_dict=True, maintain_order=True).values()
    rows = [_of_device(trace, each, window.duration_ns) for each in devices]
    found = pl.concat(rows) if rows else pl.DataFrame(schema=schema)
    return typed(found.select(pl.col(name).cast(dtype) for name, dtype in schema.items()))


def _of_device(trace: Trace, gaps: pl.DataFrame, window_ns: int) -> pl.DataFrame:
    """Return the rows of one device."""
    idle_ns = int(gaps["duration_ns"].sum())
    pieces = host_pieces(trace, host_spans(gaps))
    duration_ns = pl.col("duration_ns")
    by_event = pieces.group_by("kind", "name", "event").agg(
        duration_ns=(pl.col("end_ns") - pl.col("start_ns")).sum(), n_pieces=pl.len()
    )
    is_gap = pl.col("kind") == BETWEEN
    return (
        by_event.sort("duration_ns", "event", descending=[True, False])
        .group_by("kind", "name", maintain_order=True)
        .agg(
            pl.len().alias("count"), duration_ns.sum(), pl.col("event").first(), pl.sum("n_pieces")
        )
        .with_columns(
            count=pl.when(is_gap).then("n_pieces").otherwise("count"),
            device=pl.lit(gaps["device"][0], gaps.schema["device"]),
            share_of_idle=duration_ns / max(idle_ns, 1),
            window_share=duration_ns / max(window_ns, 1),
        )
        .sort("duration_ns", "name", descending=[True, False])
    )
