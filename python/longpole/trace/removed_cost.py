"""The trace without recording overhead, by the best known step time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from longpole.engine.recording_cost import (
    misfit,
    nearest,
    nearest_sentence,
    recording_cost_of,
    timings_of,
    unknown_cost,
)
from longpole.errors import WindowError
from longpole.words.wording import duration_range

if TYPE_CHECKING:
    from longpole._core import Trace as CoreTrace
    from longpole.engine.recording_cost import OverheadParts, RecordingCost, Timings

# Two timings of one program on one machine may differ by this factor if the host limits it.
_ALIKE: Final = 1.10

# Beyond this factor outside its bounds, a cost of recording is impossible.
_IMPOSSIBLE: Final = 2


Ask = Callable[[int | None], tuple["OverheadParts", "CoreTrace | None"]]
"""What returns the cost with which a step takes some time, and the trace without it if known."""


def removed(
    core: CoreTrace, step_time_ns: int | None, step_name: str | None, data_load: str | None
) -> tuple[CoreTrace, RecordingCost]:
    """Return the trace without recording overhead, and that overhead."""
    ask = partial(core.without_profiler, data_load=data_load, step_name=step_name)
    return _removed(core, ask, step_time_ns)


def cost_of(
    core: CoreTrace, step_time_ns: int | None, step_name: str | None, data_load: str | None
) -> RecordingCost:
    """Return the recording overhead alone, which takes less time than to remove it."""

    def ask(step_ns: int | None) -> tuple[OverheadParts, CoreTrace | None]:
        parts = core.recording_cost(step_ns, data_load=data_load, step_name=step_name)
        return parts, core if parts["not_estimated"] is None else None

    _, cost = _removed(core, ask, step_time_ns)
    return cost


def _removed(
    core: CoreTrace, ask: Ask, step_time_ns: int | None
) -> tuple[CoreTrace, RecordingCost]:
    timings = timings_of(core.header)
    try:
        if step_time_ns is not None:
            found, cost = _given(core, ask, step_time_ns, timings)
        elif timings.all_ns:
            found, cost = _measured(core, ask, timings)
        else:
            found, cost = _estimated(core, ask)
    except WindowError as error:
        why, _, _ = str(error).partition("\nhint: ")
        found, cost = core, unknown_cost(why)
    cost |= {"timed_ns": timings.all_ns, "drift_ns": timings.drift_ns}
    return found, cost


def _given(
    core: CoreTrace, ask: Ask, step_time_ns: int, timings: Timings
) -> tuple[CoreTrace, RecordingCost]:
    parts, found = ask(step_time_ns)
    taken_ns = nearest(parts, step_time_ns)
    if found is not None and taken_ns == step_time_ns:
        return found, recording_cost_of(parts, "given", (step_time_ns, step_time_ns))
    if found is None or taken_ns is None:
        estimated, cost = _estimated(core, ask)
        cost["misfit"] = misfit(parts, step_time_ns, timings.all_ns)
        return estimated, cost
    parts, found = ask(taken_ns)
    cost = recording_cost_of(parts, "given", (taken_ns, taken_ns))
    cost["nearest"] = nearest_sentence(step_time_ns, taken_ns)
    return found or core, cost


def _measured(core: CoreTrace, ask: Ask, timings: Timings) -> tuple[CoreTrace, RecordingCost]:
    """Use the median of the timed steps, unless it does not fit or needs impossible costs."""
    from statistics import median

    times_ns = timings.all_ns
    asked_ns = round(median(times_ns))
    parts, found = ask(asked_ns)
    lengths_ns = parts["lengths_ns"]
    is_as_recorded = lengths_ns is not None and _are_alike(lengths_ns[0], asked_ns)
    if lengths_ns is not None and is_as_recorded and asked_ns > lengths_ns[0]:
        # Recording does not make a step shorter: at most, it cost nothing.
        asked_ns = lengths_ns[0]
        parts, found = ask(asked_ns)
    fits = found is not None and misfit(parts, asked_ns) is None
    if found is not None and fits and not (is_as_recorded and _is_impossible(parts)):
        return found, _measured_cost(parts, asked_ns, times_ns)
    estimated, cost = _estimated(core, ask)
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


def _estimated(core: CoreTrace, ask: Ask) -> tuple[CoreTrace, RecordingCost]:
    parts, found = ask(None)
    return found or core, recording_cost_of(parts, "estimated", None)


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
