"""The trace without recording overhead, by the best known step time."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

from longpole.errors import WindowError
from longpole.recording_cost import (
    measured_step_ns,
    misfit,
    recording_cost_of,
    unknown_cost,
)
from longpole.wording import duration

if TYPE_CHECKING:
    from longpole._core import Trace as CoreTrace
    from longpole.recording_cost import RecordingCost

__all__ = ["removed"]

# Times that differ by less count as equal: the wait for the last of five timed steps made them up
# to 5 % longer on an H100.
_ALIKE: Final = 1.05


def removed(
    core: CoreTrace, step_time_ns: int | None, step_name: str | None, data_load: str | None
) -> tuple[CoreTrace, RecordingCost]:
    """Return the trace without recording overhead, and that overhead.

    Raises
    ------
    ValueError
        No recording overhead explains the given step time.
    """
    try:
        if step_time_ns is not None:
            return _given(core, step_time_ns, step_name, data_load)
        return _measured_or_estimated(core, step_name, data_load)
    except WindowError as error:
        why, _, _ = str(error).partition("\nhint: ")
        return core, unknown_cost(why)


def _given(
    core: CoreTrace, step_time_ns: int, step_name: str | None, data_load: str | None
) -> tuple[CoreTrace, RecordingCost]:
    parts, found = core.without_profiler(step_time_ns, data_load=data_load, step_name=step_name)
    why = misfit(parts, step_time_ns)
    if why is not None or found is None:
        raise ValueError(why)
    return found, recording_cost_of(parts, "given", (step_time_ns, step_time_ns))


def _measured_or_estimated(
    core: CoreTrace, step_name: str | None, data_load: str | None
) -> tuple[CoreTrace, RecordingCost]:
    times_ns = measured_step_ns(core.header)
    reason = None
    if times_ns:
        asked_ns = round(median(times_ns))
        parts, found = core.without_profiler(asked_ns, data_load=data_load, step_name=step_name)
        reason = misfit(parts, asked_ns)
        if reason is None and found is not None:
            bounds_ns = (min(times_ns), max(times_ns))
            return found, recording_cost_of(parts, "measured", bounds_ns)
    parts, found = core.without_profiler(None, data_load=data_load, step_name=step_name)
    cost = recording_cost_of(parts, "estimated", None)
    if reason is not None and not _is_as_recorded(cost, times_ns):
        cost["reason"] = (
            f"Steps that were timed without a profiler took {_span(times_ns)}, which does not fit "
            "the recorded steps: the speed of the program changed during the run"
        )
    return found or core, cost


def _is_as_recorded(cost: RecordingCost, times_ns: list[int]) -> bool:
    """Whether measured steps are about as long as recorded ones."""
    recorded_ns, measured_ns = cost["recorded_step_ns"] or 0, median(times_ns)
    return max(recorded_ns, measured_ns) <= _ALIKE * min(recorded_ns, measured_ns)


def _span(times_ns: list[int]) -> str:
    return f"{duration(min(times_ns))} to {duration(max(times_ns))}"
