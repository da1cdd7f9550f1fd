"""What the host of a server does between iterations, and in each before its launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.rows.frames import frame_schema
from longpole.tables.served import HostWork

if TYPE_CHECKING:
    from longpole.trace.trace import Trace

# An event of which less lies in the spans encloses iterations, such as the loop of the server.
_MOSTLY_INSIDE: Final = 0.5


def between(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """Return what the host does from the end of each iteration to the start of the next."""
    host_end_ns = (pl.col("start_ns") + pl.col("host_ns")).shift(1)
    return _host_work(trace, rows.with_columns(end_ns="start_ns", start_ns=host_end_ns))


def before_launch(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """Return what the host does from the start of each iteration to its launch."""
    launched_ns = pl.col("start_ns") + pl.col("before_launch_ns")
    return _host_work(trace, rows.with_columns(end_ns=launched_ns))


def _host_work(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """Sum up the events of the host in the spans of the threads of iterations, by name."""
    lanes = trace.events.select("event", "lane")
    spans = rows.join(lanes, on="event", maintain_order="left").select("lane", "start_ns", "end_ns")
    spans = spans.drop_nulls().filter(pl.col("end_ns") > pl.col("start_ns"))
    all_ns = int((spans["end_ns"] - spans["start_ns"]).sum())
    schema = frame_schema(HostWork)
    if not all_ns:
        return pl.DataFrame(schema=schema)
    described = trace.events.select("event", pl.col("name").cast(pl.String), "duration_ns")
    is_inside = pl.col("total_ns") >= _MOSTLY_INSIDE * pl.col("duration_ns").fill_null(0)
    events = trace.times_within(spans).join(described, on="event").filter(is_inside)
    sums = (
        events.filter(~pl.col("event").is_in(rows["event"].implode()))
        .group_by("name")
        .agg(duration_ns=pl.col("total_ns").sum(), first=pl.col("event").min())
        .with_columns(share=(pl.col("duration_ns") / all_ns).clip(upper_bound=1.0))
        .sort("duration_ns", "first", descending=[True, False])
    )
    return sums.select(pl.col(name).cast(dtype) for name, dtype in schema.items())
