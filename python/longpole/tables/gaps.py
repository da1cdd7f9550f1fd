"""Table `gaps`: the idle gaps of devices, longest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.engine.windows import window_of
from longpole.rows.frames import frame_schema, typed
from longpole.rows.selection import matching
from longpole.tables.catalogue import table
from longpole.tables.device_times import SHORT_NS
from longpole.tables.host_pieces import device_gaps, host_pieces, host_spans
from longpole.tables.needs import ACTIVITIES
from longpole.trace import sweeps
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_EVENTS: Final = ("next_event", "previous_event", "call")
# The sum of a start and a duration, each rounded, can miss the start of what follows by this much.
_ROUNDING_NS: Final = 1


class GapRow(Row):
    """A span of time in which nothing ran on a device. Unknown values are null."""

    device: int | None
    offset_ns: int
    """Its start, from the start of the window."""
    duration_ns: int
    cause: str
    """Cause as in `idle`: a late launch and a longer wait after it are two rows."""
    host_name: str | None
    """Activity of the launching thread that took most of `host_ns`, as in `idle` by
    host."""
    next_event: int | None
    """The activity that ended the gap; null if none did."""
    next_name: str | None
    previous_name: str | None
    """The activity before the gap."""
    previous_event: int | None
    host_ns: int | None
    """Part of the gap before the launch call of the next activity returned."""
    window_share: float
    call: int | None
    """Event of that launch call."""
    start_ns: int


@table(
    GapRow,
    needs=(ACTIVITIES,),
    empty="No device was idle in it.",
)
def gaps(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """List the idle gaps of each device: when, how long, why, and what the host did meanwhile.

    Sums by cause, and by what the host did, are in `idle`. Gaps of 1 ns
    are left out: times are rounded to that.

    Parameters
    ----------
    where
        A condition on the columns of the result.

    Returns
    -------
    DataFrame
        A row for each gap, longest first.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().launch("gemm", call=(0, 1), work=(2, 10))
    >>> builder = builder.operator("aten::add", (12, 40))
    >>> trace = builder.launch("add", call=(30, 35), work=(40, 50)).read()
    >>> gaps(trace).select("duration_ns", "cause", "host_ns", "host_name", "next_name").row(0)
    (30000, 'waiting_for_launch', 25000, 'aten::add', 'add')
    """
    schema = frame_schema(GapRow) | dict.fromkeys(_EVENTS, pl.UInt32)
    window = window_of(trace, window)
    if window is None:
        return typed(pl.DataFrame(schema=schema))
    found = device_gaps(trace, window)
    offset_ns = pl.col("start_ns") - window.start_ns
    share = pl.col("duration_ns") / max(window.duration_ns, 1)
    rows = (
        _with_neighbours(trace, found)
        .join(_host_names(trace, found), on="span", how="left")
        .with_columns(cause=_CAUSE)
        .pipe(_divided)
        .filter(pl.col("duration_ns") > _ROUNDING_NS)
        .with_columns(offset_ns=offset_ns, window_share=share)
        .sort("duration_ns", "start_ns", "device", descending=[True, False, False])
        .select(pl.col(name).cast(dtype) for name, dtype in schema.items())
    )
    return matching(typed(rows), where)


_WHOLE_NS = pl.col("next_start_ns") - pl.col("previous_end_ns")
_CAUSE = (
    pl.when(pl.col("next_event").is_null())
    .then(pl.lit("after_last"))
    .when(pl.col("call").is_null())
    .then(pl.lit("unlinked"))
    .when(pl.col("call_start_ns") > pl.col("previous_end_ns"))
    .then(pl.lit("waiting_for_launch"))
    .when(_WHOLE_NS < SHORT_NS)
    .then(pl.lit("between_activities"))
    .otherwise(pl.lit("other_wait"))
)
"""Cause of the whole gap, also if the window clips it."""


def _divided(rows: pl.DataFrame) -> pl.DataFrame:
    """Divide the gaps in which the next activity waited long after its launch, as `idle`."""
    start_ns, duration_ns = pl.col("start_ns"), pl.col("duration_ns")
    returned_ns = pl.col("call_end_ns").clip(pl.col("previous_end_ns"), pl.col("next_start_ns"))
    waits = (pl.col("cause") == "waiting_for_launch") & (
        pl.col("next_start_ns") - returned_ns >= SHORT_NS
    )
    split_ns = returned_ns.clip(start_ns, start_ns + duration_ns)
    late = rows.filter(waits)
    launching = late.with_columns(duration_ns=split_ns - start_ns)
    waiting = late.with_columns(
        start_ns=split_ns,
        duration_ns=start_ns + duration_ns - split_ns,
        cause=pl.lit("other_wait"),
        host_ns=pl.lit(0, pl.Int64),
        host_name=pl.lit(None, pl.String),
    )
    return pl.concat([rows.filter(~waits.fill_null(value=False)), launching, waiting])


def _with_neighbours(trace: Trace, found: pl.DataFrame) -> pl.DataFrame:
    """Add the activities before and after each gap; null before the first activity."""
    works = sweeps.activities(trace).filter(pl.col("duration_ns") >= 0)
    works = works.with_columns(end_ns=pl.col("start_ns") + pl.col("duration_ns"))
    name = pl.col("name").cast(pl.String)
    ends = works.sort("end_ns", "event").select(
        "device",
        previous_event="event",
        previous_name=name,
        previous_end_ns="end_ns",
        at_ns="end_ns",
    )
    following = works.select(
        "call_start_ns", next_event="event", next_name=name, next_start_ns="start_ns"
    )
    calls = trace.events.select(
        call="event", call_end_ns=pl.col("start_ns") + pl.col("duration_ns")
    )
    return (
        found.rename({"next": "next_event"})
        .with_columns(at_ns="start_ns")
        .sort("at_ns")
        .join_asof(ends, on="at_ns", by="device", check_sortedness=False)
        .join(following, on="next_event", how="left")
        .join(calls, on="call", how="left")
        .with_columns(pl.col("previous_end_ns").fill_null(pl.col("start_ns")))
    )


def _host_names(trace: Trace, found: pl.DataFrame) -> pl.DataFrame:
    """Return what the host did most of each gap."""
    duration_ns = (pl.col("end_ns") - pl.col("start_ns")).sum()
    return (
        host_pieces(trace, host_spans(found))
        .group_by("span", "name")
        .agg(duration_ns=duration_ns)
        .sort("span", "duration_ns", "name", descending=[False, True, False])
        .unique("span", keep="first", maintain_order=True)
        .select("span", host_name="name")
    )
