"""Counts launches, activities, blocking calls and memory per step, and lists input shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.diffs.values import Counts
from longpole.engine.windows import launching_calls
from longpole.rows.frames import argument

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from longpole.diffs.sides import Side

_MOST: Final = 3


def counts_of(base: Side, new: Side) -> tuple[Counts, ...]:
    """Count the contents of the mean step of both sides."""
    sides = [_counts(side) for side in (base, new)]
    return tuple(Counts(what, sides[0][what], sides[1][what]) for what in sides[0])


def peak_memory_bytes(side: Side) -> int | None:
    """Return the peak of allocated memory on a device during the steps; None if unknown."""
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
    times = side.events.select("event", "start_ns")
    inside = known.join(times, on="event").filter(
        pl.col("start_ns").is_between(start_ns, end_ns), pl.col("device") >= 0
    )
    peak = inside["allocated"].max()
    return peak if isinstance(peak, int) else None


def _counts(side: Side) -> dict[str, float]:
    import polars as pl

    is_operator = pl.col("kind") == "operator"
    events = {
        "launches": launching_calls(side.trace),
        "gpu_activities": side.trace.launches["call"].drop_nulls(),
        "blocking_calls": side.trace.blocking_calls["event"],
        "operators": side.events.select("event", "kind").filter(is_operator)["event"],
    }
    return {what: _per_step(side, found) for what, found in events.items()}


def _per_step(side: Side, events: pl.Series) -> float:
    starts_ns = side.events["start_ns"].gather(events).to_numpy()
    return float((side.rows_at(starts_ns) >= 0).sum()) / side.n_steps


def shapes_of(side: Side, kind: str, events: NDArray[np.uint32]) -> tuple[str, ...]:
    """Return the shapes of the operators of some events, most frequent first."""
    import polars as pl

    rows = pl.Series("event", events, pl.UInt32).to_frame()
    if kind != "operator":
        known = side.trace.launches.select("event", "operator").drop_nulls()
        rows = rows.join(known, on="event").select(event="operator")
    texts = [
        rows.join(args.select("event", "Input Dims").drop_nulls(), on="event")["Input Dims"]
        for category in side.trace.categories
        if (args := side.trace.args(category)) is not None and "Input Dims" in args.columns
    ]
    if not texts:
        return ()
    counted = pl.concat([text.cast(str) for text in texts]).rename("shape").to_frame()
    shape = pl.col("shape").str.replace_all(r"\s", "")
    ranked = counted.group_by(shape).len("n").sort("n", "shape", descending=[True, False])
    return tuple(ranked["shape"].head(_MOST))
