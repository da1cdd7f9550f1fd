"""Splits spans of a thread by the innermost event that ran at each moment.

Time in no operator, call, Python function or annotation of the program gets a name from the events
before and after it, as in the remedy `python_between_operators`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.words.wording import short_name

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

BETWEEN: Final = "host_gap"
"""Kind of time in no operator, call, function or annotation of the program, as in `segments`."""
_OUTSIDE: Final = "outside all events"
_KNOWN: Final = ("operator", "runtime", "driver")
"""Kinds of events that name the time between them."""
_WIDEST: Final = 60
_MOST_WALKS: Final = 32
"""Maximum number of parents to follow from an event if they end before it."""
_ROUNDED_NS: Final = 1_000_000
"""No event ends as much later than the events around it."""
_MIN, _MAX = (pl.lit(time_ns, pl.Int64) for time_ns in (-(2**63), 2**63 - 1))
_SCHEMA: Final = {
    "span": pl.UInt32,
    "kind": pl.String,
    "name": pl.String,
    "event": pl.UInt32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
}


def device_gaps(trace: Trace, window: Window) -> pl.DataFrame:
    """List the idle gaps of devices in a window: `Trace.gaps` with the launching `lane`."""
    lanes = trace.events.select("lane", call="event")
    gaps = trace.gaps(*window.span).with_row_index("span")
    return gaps.join(lanes, on="call", how="left", maintain_order="left")


def host_spans(gaps: pl.DataFrame) -> pl.DataFrame:
    """Return the parts of `device_gaps` in which the device waited for its launching thread."""
    waits = gaps.filter(pl.col("host_ns") > 0, pl.col("lane").is_not_null())
    end_ns = pl.col("start_ns") + pl.col("host_ns")
    return waits.select("span", "lane", "start_ns", end_ns=end_ns)


def host_pieces(trace: Trace, spans: pl.DataFrame) -> pl.DataFrame:
    """Split spans of time of threads by the innermost event.

    Parameters
    ----------
    trace
        The trace.
    spans
        `span` (a number), `lane`, `start_ns` and `end_ns`.

    Returns
    -------
    DataFrame
        Pieces that tile each span: `span`, `kind`, `name`, `event`, `start_ns`, `end_ns`. Between
        two operators or calls, the event is the later of them.
    """
    spans = spans.filter(pl.col("end_ns") > pl.col("start_ns"))
    if spans.is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    events = _around(trace.events, spans).select(
        "lane",
        "event",
        "start_ns",
        "depth",
        "parent",
        pl.col("kind").cast(pl.String),
        pl.col("name").cast(pl.String),
        "end_ns",
    )
    steps = trace.steps["event"].drop_nulls().implode()
    is_step = (pl.col("kind") == "annotation") & pl.col("event").is_in(steps)
    owned = _cut(_owners(events, trace.crossings["event"]), spans).join(
        events.select("kind", "name", "event", is_step=is_step), on="event", how="left"
    )
    is_named = pl.col("kind").is_not_null() & ~pl.col("is_step")
    named = owned.filter(is_named)
    between = _between(owned.filter(~is_named.fill_null(value=False)), events)
    return pl.concat([frame.select(*_SCHEMA) for frame in (named, between)]).sort(
        "span", "start_ns"
    )


def _around(events: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """Return the events of threads during spans, and the neighbours that name time between them."""
    end_ns = pl.col("start_ns") + pl.col("duration_ns")
    is_on_lane = pl.col("lane").is_in(spans["lane"].unique().implode())
    on_lanes = events.filter(is_on_lane, pl.col("depth").is_not_null()).with_columns(end_ns=end_ns)
    first_ns, last_ns = spans.select(pl.col("start_ns").min(), pl.col("end_ns").max()).row(0)
    is_before, is_after = pl.col("end_ns") <= first_ns, pl.col("start_ns") >= last_ns
    is_known = pl.col("kind").cast(pl.String).is_in(_KNOWN)
    last_before = pl.col("end_ns").filter(is_before & is_known).max().over("lane")
    first_after = pl.col("start_ns").filter(is_after & is_known).min().over("lane")
    # A parent may end before an event in it, because profilers round times.
    ends_late = pl.col("end_ns") >= pl.min_horizontal(last_before, first_ns - _ROUNDED_NS)
    starts_early = pl.col("start_ns") <= pl.max_horizontal(first_after, last_ns)
    return on_lanes.filter(ends_late, starts_early)


def _owners(events: pl.DataFrame, crossings: pl.Series) -> pl.DataFrame:
    """Return spans that tile each thread: its innermost event, null where none runs."""
    events = events.filter(pl.col("end_ns") > pl.col("start_ns"))
    depth = pl.col("depth").cast(pl.Int64)
    opened = events.select("lane", "event", time_ns="start_ns", order=depth)
    closed = _closed(events, crossings).select(
        "lane", event="parent", time_ns="end_ns", order=-1 - depth
    )
    never = events.select(pl.col("lane").unique()).with_columns(
        event=pl.lit(None, pl.UInt32), time_ns=_MIN, order=pl.lit(0, pl.Int64)
    )
    return (
        pl.concat([frame.select(never.columns) for frame in (never, opened, closed)])
        .sort("lane", "time_ns", "order")
        .unique(["lane", "time_ns"], keep="last", maintain_order=True)
        .with_columns(until_ns=pl.col("time_ns").shift(-1).over("lane").fill_null(_MAX))
        .drop("order")
        .with_row_index("piece")
    )


def _closed(events: pl.DataFrame, crossings: pl.Series) -> pl.DataFrame:
    """Return the events after whose end the enclosing event runs again; `parent` is that event.

    An event that ends inside a later one is left out: the time belongs to the event that started
    last.
    """
    crossing = events.filter(pl.col("event").is_in(crossings.implode()))
    if crossing.is_empty():
        return events
    ends = events.select("event", parent_end_ns="end_ns", parent_parent="parent")
    has_ended = pl.col("parent_end_ns") < pl.col("end_ns")
    for walk in range(_MOST_WALKS):
        events = events.join(ends, left_on="parent", right_on="event", how="left")
        if not events.select(has_ended.any()).item():
            break
        # Due to rounded times, a chain of ended parents can be as long as the nesting: limit it.
        next_one = pl.col("parent_parent") if walk + 1 < _MOST_WALKS else pl.lit(None, pl.UInt32)
        parent = pl.when(has_ended).then(next_one).otherwise("parent")
        events = events.with_columns(parent=parent).drop("parent_end_ns", "parent_parent")
    later = crossing.select(
        "lane", at_ns="start_ns", later_start_ns="start_ns", later_end_ns="end_ns"
    ).sort("at_ns")
    found = (
        events.with_columns(at_ns=pl.col("end_ns") - 1)
        .sort("at_ns")
        .join_asof(later, on="at_ns", by="lane", check_sortedness=False)
    )
    is_crossed = (pl.col("later_start_ns") > pl.col("start_ns")) & (
        pl.col("later_end_ns") > pl.col("end_ns")
    )
    return found.filter(~is_crossed.fill_null(value=False))


def _cut(owners: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """Return the pieces of each span with the event that each belongs to."""
    places = owners.select("lane", "piece", at_ns="time_ns").sort("at_ns")
    for name, time_ns in (("first", pl.col("start_ns")), ("last", pl.col("end_ns") - 1)):
        spans = (
            spans.with_columns(at_ns=time_ns)
            .sort("at_ns")
            .join_asof(places, on="at_ns", by="lane", check_sortedness=False)
            .rename({"piece": name})
        )
    indices = pl.int_ranges("first", pl.col("last") + 1, dtype=pl.UInt32)
    pieces = (
        spans.with_columns(piece=indices)
        .explode("piece")
        .join(owners.drop("lane"), on="piece", how="left")
    )
    return pieces.select(
        "span",
        "lane",
        "event",
        start_ns=pl.max_horizontal("start_ns", "time_ns"),
        end_ns=pl.min_horizontal("end_ns", "until_ns"),
    )


def _between(pieces: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Label pieces with the outermost operators or calls before and after them."""
    known = events.filter(pl.col("kind").is_in(_KNOWN))
    before = (
        known.sort("end_ns", "start_ns", "depth", "event", descending=[False, True, True, True])
        .unique(["lane", "end_ns"], keep="last", maintain_order=True)
        .select("lane", before="name", at_ns="end_ns")
    )
    after = (
        known.sort("start_ns", "end_ns", "depth", "event", descending=[False, True, False, False])
        .unique(["lane", "start_ns"], keep="first", maintain_order=True)
        .select("lane", "event", after="name", at_ns="start_ns")
    )
    named = (
        pieces.drop("event")
        .with_columns(at_ns="start_ns")
        .sort("at_ns")
        .join_asof(before, on="at_ns", by="lane", check_sortedness=False)
        .with_columns(at_ns="end_ns")
        .sort("at_ns")
        .join_asof(after, on="at_ns", by="lane", strategy="forward", check_sortedness=False)
    )
    ends = named.select("before", "after").unique()
    names = [_name(*pair) for pair in ends.iter_rows()]
    labels = ends.with_columns(name=pl.Series(names, dtype=pl.String))
    return (
        named.drop("name", "kind")
        .join(labels, on=["before", "after"], how="left", nulls_equal=True)
        .with_columns(kind=pl.lit(BETWEEN))
    )


def _name(before: str | None, after: str | None) -> str:
    """Return a name for the time between two operators or calls, either of which can be missing."""
    first, last = (short_name(name, _WIDEST) if name else None for name in (before, after))
    if first and last:
        return f"between {first} and {last}"
    return f"before {last}" if last else f"after {first}" if first else _OUTSIDE
