"""The trace without recording overhead, by the best known step time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.engine.recording_cost import (
    TOO_COARSE,
    misfit,
    nearest,
    nearest_sentence,
    recording_cost_of,
    timings_of,
    unknown_cost,
)
from longpole.errors import WindowError
from longpole.trace.tables import ON_DEVICE
from longpole.words.wording import duration_range

if TYPE_CHECKING:
    import polars as pl

    from longpole._core import Trace as CoreTrace
    from longpole.engine.recording_cost import OverheadParts, RecordingCost, Timings

# Two timings of one program on one machine may differ by this factor if the host limits it.
_ALIKE: Final = 1.10

# Beyond this factor outside its bounds, a cost of recording is impossible.
_IMPOSSIBLE: Final = 2

# The device counts as busy at a time if an activity ends at most this long before.
_LONGEST_GAP_NS: Final = 30_000

# Number of events whose times tell the resolution of a trace.
_SAMPLED: Final = 5_000

_ON_HOST: Final = ("operator", "runtime", "driver", "python")


def removed(
    core: CoreTrace, step_time_ns: int | None, step_name: str | None, data_load: str | None
) -> tuple[CoreTrace, RecordingCost]:
    """Return the trace without recording overhead, and that overhead."""
    timings = timings_of(core.header)
    try:
        if step_time_ns is not None:
            found, cost = _given(core, step_time_ns, timings, step_name, data_load)
        elif timings.all_ns:
            found, cost = _measured(core, timings, step_name, data_load)
        else:
            found, cost = _estimated(core, step_name, data_load)
    except WindowError as error:
        why, _, _ = str(error).partition("\nhint: ")
        found, cost = core, unknown_cost(why)
    cost |= {"timed_ns": timings.all_ns, "drift_ns": timings.drift_ns}
    return found, cost


def _given(
    core: CoreTrace,
    step_time_ns: int,
    timings: Timings,
    step_name: str | None,
    data_load: str | None,
) -> tuple[CoreTrace, RecordingCost]:
    parts, found = core.without_profiler(step_time_ns, data_load=data_load, step_name=step_name)
    taken_ns = nearest(parts, step_time_ns)
    if found is not None and taken_ns == step_time_ns:
        return found, recording_cost_of(parts, "given", (step_time_ns, step_time_ns))
    if found is None or taken_ns is None:
        estimated, cost = _estimated(core, step_name, data_load)
        cost["misfit"] = misfit(parts, step_time_ns, timings.all_ns)
        return estimated, cost
    parts, found = core.without_profiler(taken_ns, data_load=data_load, step_name=step_name)
    cost = recording_cost_of(parts, "given", (taken_ns, taken_ns))
    cost["nearest"] = nearest_sentence(step_time_ns, taken_ns)
    return found or core, cost


def _measured(
    core: CoreTrace, timings: Timings, step_name: str | None, data_load: str | None
) -> tuple[CoreTrace, RecordingCost]:
    """Use the median of the timed steps, unless it does not fit or needs impossible costs."""
    from statistics import median

    times_ns = timings.all_ns
    asked_ns = round(median(times_ns))
    parts, found = core.without_profiler(asked_ns, data_load=data_load, step_name=step_name)
    lengths_ns = parts["lengths_ns"]
    is_as_recorded = lengths_ns is not None and _are_alike(lengths_ns[0], asked_ns)
    if lengths_ns is not None and is_as_recorded and asked_ns > lengths_ns[0]:
        # Recording does not make a step shorter: at most, it cost nothing.
        asked_ns = lengths_ns[0]
        parts, found = core.without_profiler(asked_ns, data_load=data_load, step_name=step_name)
    fits = found is not None and misfit(parts, asked_ns) is None
    if found is not None and fits and not (is_as_recorded and _is_impossible(parts)):
        return found, _measured_cost(parts, asked_ns, times_ns)
    estimated, cost = _estimated(core, step_name, data_load)
    if found is not None and fits and not _are_alike(cost["step_ns"] or asked_ns, asked_ns):
        return found, _measured_cost(parts, asked_ns, times_ns)
    is_within = lengths_ns is not None and min(times_ns) <= lengths_ns[0] <= max(times_ns)
    if not fits and not is_as_recorded and not is_within:
        why = "" if timings.drift_ns else ": the speed of the program may have changed meanwhile"
        took = duration_range(min(times_ns), max(times_ns))
        cost["misfit"] = (
            f"steps that were timed without the profiler took {took}, which does not fit the "
            f"recorded steps{why}"
        )
    return estimated, cost


def _measured_cost(parts: OverheadParts, step_ns: int, times_ns: tuple[int, ...]) -> RecordingCost:
    """Return the cost that makes the step as long as measured, with the range of the timings.

    A step that is shorter as recorded than in all timings extends that range.
    """
    return recording_cost_of(parts, "measured", (min(*times_ns, step_ns), max(*times_ns, step_ns)))


def _estimated(
    core: CoreTrace, step_name: str | None, data_load: str | None
) -> tuple[CoreTrace, RecordingCost]:
    parts, found = core.without_profiler(None, data_load=data_load, step_name=step_name)
    if found is not None and parts["lengths_ns"] is not None and _is_coarse(core):
        recorded_ns, usual_ns, least_ns, _ = parts["lengths_ns"]
        parts["not_estimated"] = "few_operators"
        parts["lengths_ns"] = recorded_ns, usual_ns, least_ns, recorded_ns
        return core, recording_cost_of(parts, "estimated", None) | {"reason": TOO_COARSE}
    return found or core, recording_cost_of(parts, "estimated", None)


def _is_coarse(core: CoreTrace) -> bool:
    """Whether all times are whole microseconds, too coarse for the cost of one event."""
    n_events = len(core.events(["duration_ns"]))
    lengths_ns = core.event_durations_ns(range(min(n_events, _SAMPLED)))
    return all(length_ns is None or length_ns % 1_000 == 0 for length_ns in lengths_ns)


def _are_alike(one_ns: int, other_ns: int) -> bool:
    return max(one_ns, other_ns) <= _ALIKE * min(one_ns, other_ns)


def _is_impossible(parts: OverheadParts) -> bool:
    """Whether a measured step needs a cost of recording far outside its bounds.

    A step that recording hardly changes says little about the cost of one event: a small difference
    between two runs is then divided by few events.
    """
    costs = [(parts["factor"] * row["cost_ns"], row) for row in parts["classes"]]
    return any(
        cost_ns > _IMPOSSIBLE * row["most_ns"] or _IMPOSSIBLE * cost_ns < row["least_ns"]
        for cost_ns, row in costs
    )


def retimed(recorded: pl.DataFrame, now: pl.DataFrame, time_ns: int) -> int:
    """Return when a time of the recording lies in the trace without recording overhead.

    `recorded` and `now` are the events of both. While a device is busy, its activities tell: each
    starts at another time, but keeps its duration. Otherwise the calls of the busiest thread tell,
    between which the time is interpolated.
    """
    import polars as pl

    end_ns = pl.col("start_ns") + pl.col("duration_ns")
    rows = (
        recorded.select(pl.col("kind").cast(pl.String), "lane", "start_ns", end_ns=end_ns)
        .with_columns(now.select(start_now_ns="start_ns", end_now_ns=end_ns))
        .drop_nulls(["end_ns", "end_now_ns"])
    )
    last = rows.filter(
        pl.col("kind").is_in(ON_DEVICE)
        & (pl.col("start_ns") <= time_ns)
        & (pl.col("end_ns") > time_ns - _LONGEST_GAP_NS)
    ).sort("end_ns")
    if last.height:
        moved_ns: int = last["end_now_ns"][-1] - last["end_ns"][-1]
        return time_ns + moved_ns
    on_host = rows.filter(pl.col("kind").is_in(_ON_HOST))
    if on_host.is_empty():
        return time_ns
    return _interpolated(on_host.filter(pl.col("lane") == pl.col("lane").mode().min()), time_ns)


def _interpolated(rows: pl.DataFrame, time_ns: int) -> int:
    """Map a time between the nearest starts and ends of the events of one thread."""
    import polars as pl

    starts = rows.select(then="start_ns", now="start_now_ns")
    moments = pl.concat([starts, rows.select(then="end_ns", now="end_now_ns")])
    before = moments.filter(pl.col("then") <= time_ns).max().row(0)
    after = moments.filter(pl.col("then") >= time_ns).min().row(0)
    (first, first_now), (last, last_now) = before, after
    if first is None or last is None:
        moved_ns: int = last_now - last if first is None else first_now - first
        return time_ns + moved_ns
    share: float = (time_ns - first) / (last - first) if last > first else 0
    now_ns: int = first_now + round(share * (last_now - first_now))
    return now_ns
