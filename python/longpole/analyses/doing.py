"""What threads did during some spans of time, and what held most of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from longpole.analyses.by_name import NameTime, by_name
from longpole.windows import is_step

if TYPE_CHECKING:
    from longpole.trace import Trace

__all__ = ["Doing", "HotSpot", "doing"]

# The spot that is named holds at least this share of the time, and nothing inside it does.
_DOMINANT = 0.5


@dataclass(frozen=True, slots=True)
class HotSpot(NameTime):
    """The deepest events of one name that hold most of some time."""

    callers: tuple[str | None, ...]
    """The names around it, from the outside in."""


@dataclass(frozen=True, slots=True)
class Doing:
    """What threads did in spans that are `total_ns` long."""

    total_ns: int
    recorded_ns: int
    """The part in which events other than steps were open on these threads."""
    spot: HotSpot | None
    """The deepest that holds at least half of the recorded time."""
    owners: pl.DataFrame
    """Self time by name, as `by_name` gives it."""


def doing(trace: Trace, spans: pl.DataFrame) -> Doing:
    """Find what the threads of `spans` did in them (`lane`, `start_ns`, `end_ns`, disjoint).

    Annotations of steps are no doing: what only they cover counts as not recorded.
    """
    columns = ["event", "name", "parent"]
    times = trace.times_within(spans).join(trace.events.select(columns), on="event")
    times = times.with_columns(pl.col("name").cast(pl.String), is_step=is_step(trace))
    owners = times.filter(pl.col("self_ns") > 0, ~pl.col("is_step"))
    recorded_ns = int(owners["self_ns"].sum())
    return Doing(
        total_ns=int((spans["end_ns"] - spans["start_ns"]).sum()),
        recorded_ns=recorded_ns,
        spot=_hot_spot(times, round(_DOMINANT * recorded_ns)),
        owners=by_name(owners, "self_ns"),
    )


def _hot_spot(times: pl.DataFrame, at_least_ns: int) -> HotSpot | None:
    """Go down from the outermost events as long as one name holds enough."""
    spot = None
    callers: tuple[str | None, ...] = ()
    level = _below_steps(times, times.filter(pl.col("parent").is_null()))
    while not level.is_empty():
        heaviest = by_name(level, "total_ns").row(0, named=True)
        if heaviest["duration_ns"] < max(at_least_ns, 1):
            break
        spot = HotSpot(**heaviest, callers=callers)
        callers = (*callers, spot.name)
        chosen = level.filter(pl.col("name").eq_missing(pl.lit(spot.name)))
        level = _below_steps(times, _children(times, chosen))
    return None if spot is None else _everywhere(times, spot)


def _everywhere(times: pl.DataFrame, spot: HotSpot) -> HotSpot:
    """Count the spot wherever it stands, but not what it calls of its own name."""
    named = times.filter(pl.col("name").eq_missing(pl.lit(spot.name)))
    above = named.select("event", above="parent").drop_nulls()
    nested = []
    while not above.is_empty():
        inside = above.join(named.select(above="event"), on="above", how="semi")
        nested.append(inside["event"])
        above = (
            above.join(inside, on="event", how="anti")
            .join(times.select(above="event", parent="parent"), on="above")
            .select("event", above="parent")
            .drop_nulls()
        )
    inner = pl.concat(nested) if nested else pl.Series([], dtype=pl.UInt32)
    outermost = named.filter(~pl.col("event").is_in(inner.implode()))
    return HotSpot(**by_name(outermost, "total_ns").row(0, named=True), callers=spot.callers)


def _below_steps(times: pl.DataFrame, level: pl.DataFrame) -> pl.DataFrame:
    """Put what stands in the steps of a level in their place."""
    steps = level.filter("is_step")
    return pl.concat([level.filter(~pl.col("is_step")), _children(times, steps)])


def _children(times: pl.DataFrame, parents: pl.DataFrame) -> pl.DataFrame:
    return times.join(parents.select(parent="event"), on="parent", how="semi")
