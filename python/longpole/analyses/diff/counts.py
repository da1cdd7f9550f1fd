"""How much there is of what in a step: launches, activities, blocking calls, memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.analyses.diff.values import Counts
from longpole.frames import argument
from longpole.windows import launching_calls

if TYPE_CHECKING:
    import polars as pl

    from longpole.analyses.diff.sides import Side

__all__ = ["counts_of", "peak_memory_bytes"]


def counts_of(base: Side, new: Side) -> tuple[Counts, ...]:
    """Count what a mean step of either side holds."""
    sides = [_counts(side) for side in (base, new)]
    return tuple(Counts(what, sides[0][what], sides[1][what]) for what in sides[0])


def peak_memory_bytes(side: Side) -> int | None:
    """Give the most that was allocated on a device during the steps; None where unknown."""
    import polars as pl

    start_ns, end_ns = side.steps["window_start_ns"][0], side.steps["window_end_ns"][-1]
    args = side.trace.args("cpu_instant_event", ["Total Allocated", "Device Id"])
    if args is None:
        return None
    known = args.select(
        "event",
        device=argument(args, "Device Id", pl.Int64),
        allocated=argument(args, "Total Allocated", pl.Int64),
    )
    times = side.trace.events.select("event", "start_ns")
    inside = known.join(times, on="event").filter(
        pl.col("start_ns").is_between(start_ns, end_ns), pl.col("device") >= 0
    )
    peak = inside["allocated"].max()
    return peak if isinstance(peak, int) else None


def _counts(side: Side) -> dict[str, float]:
    import polars as pl

    events = side.trace.events
    kinds = events["kind"].cast(str)
    calls = {
        "launches": events.filter(pl.col("event").is_in(launching_calls(side.trace).implode())),
        "gpu_activities": _launched(side),
        "blocking_calls": side.trace.blocking_calls.select("event").join(events, on="event"),
        "operators": events.filter(kinds == "operator"),
    }
    return {what: _per_step(side, rows) for what, rows in calls.items()}


def _launched(side: Side) -> pl.DataFrame:
    """Give the calls of GPU activities, one for each activity."""
    import polars as pl

    calls = side.trace.launches.filter(pl.col("call").is_not_null()).select(event="call")
    return calls.join(side.trace.events, on="event")


def _per_step(side: Side, rows: pl.DataFrame) -> float:
    return float((side.rows_at(rows["start_ns"].to_numpy()) >= 0).sum()) / side.n_steps
