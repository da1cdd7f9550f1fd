"""Table `host_while_idle`: what the host did while each device waited for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.analyses.catalogue import table
from longpole.data import Row
from longpole.frames import frame_schema, typed
from longpole.windows import window_of

if TYPE_CHECKING:
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["HostWhileIdleRow", "host_while_idle"]

_OUTSIDE: Final = "outside all events"


class HostWhileIdleRow(Row):
    """What a launching thread did while a device was idle."""

    device: int | None
    kind: str | None
    """Kind of the event, as in `events`; null outside all events. The time of an annotation is host
    time outside operators and calls."""
    name: str
    """Operator, function, call or annotation."""
    count: int
    """Number of events that ran while the device was idle."""
    duration_ns: int
    """Idle time during which the event ran and nothing nested in it did; all rows of a device sum
    to the time in which it waited for launches."""
    share_of_idle: float
    """Share of all idle time of the device."""
    window_share: float
    event: int | None
    """The event with most of that time."""


@table(HostWhileIdleRow)
def host_while_idle(trace: Trace, window: Window | None = None) -> pl.DataFrame:
    """Measure what the host did while each device was idle and the next launch had not returned.

    An idle interval counts on the thread that launched the activity that ended it, until this
    launch returned. The other causes of idle time are in `idle_time`.

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
    [('aten::add', 10000), ('outside all events', 10000), ('cudaLaunchKernel', 6000)]
    """
    schema = frame_schema(HostWhileIdleRow) | {"event": pl.UInt32}
    window = window_of(trace, window)
    if window is None:
        return typed(pl.DataFrame(schema=schema))
    gaps = trace.gaps(*window.span).join(_lanes(trace), on="call", how="left")
    devices = gaps.partition_by("device", as_dict=True, maintain_order=True).values()
    rows = [_of_device(trace, each, window.duration_ns) for each in devices]
    found = pl.concat(rows) if rows else pl.DataFrame(schema=schema)
    return typed(found.select(pl.col(name).cast(dtype) for name, dtype in schema.items()))


def _lanes(trace: Trace) -> pl.DataFrame:
    return trace.events.select("lane", call="event")


def _of_device(trace: Trace, gaps: pl.DataFrame, window_ns: int) -> pl.DataFrame:
    """Return the rows of one device."""
    idle_ns = int(gaps["duration_ns"].sum())
    waits = gaps.filter(pl.col("host_ns") > 0, pl.col("lane").is_not_null())
    spans = waits.select("lane", "start_ns", end_ns=pl.col("start_ns") + pl.col("host_ns"))
    events = trace.events.select("event", "kind", "name")
    ran = trace.times_within(spans).join(events, on="event")
    own_ns = pl.col("self_ns")
    named = ran.group_by("kind", "name").agg(
        count=pl.len(),
        duration_ns=own_ns.sum(),
        event=pl.col("event").sort_by(own_ns, descending=True, maintain_order=True).first(),
    )
    outside_ns = int(waits["host_ns"].sum()) - int(ran["self_ns"].sum())
    rest = {"kind": None, "name": _OUTSIDE, "count": 0, "event": None}
    outside = pl.DataFrame([rest | {"duration_ns": outside_ns}], schema=named.schema)
    duration_ns = pl.col("duration_ns")
    return (
        pl.concat([named, outside])
        .with_columns(
            device=pl.lit(gaps["device"][0], gaps.schema["device"]),
            share_of_idle=duration_ns / max(idle_ns, 1),
            window_share=duration_ns / max(window_ns, 1),
        )
        .filter(duration_ns > 0)
        .sort("duration_ns", "name", descending=[True, False])
    )
