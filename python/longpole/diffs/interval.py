"""The interval of the change: at every possible cost of recording, and at equal machine speed.

What recording one event costs is unknown, but it is the same on both sides. The change is therefore
computed at several costs, from none to the most that either trace allows, each time with the same
cost on both sides. The interval contains the statistical intervals at all of these costs, and the
change that remains if the host of the new side is as fast as that of the base.

Limits: between the costs at which the graph was solved (none, the least, the usual and the most),
the length of a step is interpolated. Other changes of the machine, such as the clock of the GPU,
are not recognised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from statistics import fmean, median
from typing import TYPE_CHECKING, Final

from longpole.diffs.judgement import Intervals
from longpole.diffs.machine import has_python, mean_on_one_machine_ns, most_of_python_ns
from longpole.diffs.runs import joint_lengths
from longpole.diffs.samples import FEWEST, Sampling, sampling_of
from longpole.diffs.sides import one_of
from longpole.rows.statistics.ranks import robust_spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.diffs.judgement import Interval
    from longpole.diffs.machine import Machine
    from longpole.diffs.runs import Runs
    from longpole.diffs.sides import Side
    from longpole.engine.recording_cost import ClassCost

Lengths = dict[int, float]

N_COSTS: Final = 11
"""Number of recording costs at which the change is computed, with none and the most."""

# The cost of an operator at the upper bound of a step, at its estimate and at its lower bound.
_OF_COST: Final = (0.65, 1.0, 1.3)

# The usual cost of events, in operators.
_IN_OPERATORS: Final = {"outer_operator": 1.0, "nested_operator": 1.0, "launch": 1.3}

# Host events that cost something to record, and the most that one costs, in operators (launches).
_RECORDED: Final = ("operator", "runtime", "annotation")
_DEAREST: Final = 2.0

# Without the most that recording may cost, at least this part of a step is left.
_LEAST_LEFT: Final = 0.2

# Operators of machines that differ by less run at the same speed.
_SAME_SPEED: Final = 0.002


@dataclass(frozen=True)
class _Curve:
    """The length of a step of one trace, by what recording one operator costs."""

    costs_ns: tuple[float, ...]
    shares: tuple[float, ...]
    """Length as a fraction of the recorded step, at these costs."""
    usual_ns: float
    """The most likely cost."""

    def share(self, cost_ns: float) -> float:
        import numpy as np

        return float(np.interp(cost_ns, self.costs_ns, self.shares))


_NO_CURVE: Final = _Curve((0.0,), (1.0,), 0.0)


def intervals_of(
    sides: Sequence[Runs],
    pair: tuple[Side, Side],
    *,
    machine: Machine | None,
    is_same_work: bool,
    are_recorded_alike: bool,
) -> Intervals | None:
    """Return the interval of the change; None if there are too few steps or runs.

    Parameters
    ----------
    sides
        The runs of both sides.
    pair
        The traces from which details are taken.
    machine
        The speed of operators that did not change, if known.
    is_same_work
        Whether both sides do the same work equally often.
    are_recorded_alike
        Whether both sides were recorded with the same options. If not, the steps as recorded are
        not comparable.
    """
    are_timed = all(len(side.timed_ns) >= FEWEST for side in sides)
    base, new = (_timed(side) if are_timed else _lengths(side, None) for side in sides)
    are_runs = any(len(side.runs) > 1 for side in sides)
    recorded = [_lengths(side, 0.0) for side in sides]
    sampling = Sampling() if are_timed else sampling_of(recorded[0], recorded[1], are_runs=are_runs)
    estimated = _changes(base, new, sampling)
    if estimated is None:
        return None
    if not are_timed:
        others = _at_costs(sides, sampling, from_none=are_recorded_alike)
    else:
        # Two timings of one program may differ by more than their noise, so the recorded steps of
        # the same work have to agree.
        others = [_as_recorded(sides)] if is_same_work and are_recorded_alike else []
    at_any_cost = _hull([estimated, *others])
    change = _change_on_one_machine(sides, pair, machine, are_timed=are_timed)
    whole = at_any_cost if change is None else _hull([at_any_cost, (change, change)])
    if has_python(pair[0]) != has_python(pair[1]):
        at_any_cost, whole = (_with_python(it, pair) for it in (at_any_cost, whole))
    spread = max(map(_spread_of, (sampling.of(base), sampling.of(new))))
    return Intervals(whole, at_any_cost, estimated, spread)


def _timed(side: Runs) -> Lengths:
    """Return the steps that were timed without the profiler."""
    return dict(enumerate(map(float, side.timed_ns)))


def _with_python(interval: Interval, pair: tuple[Side, Side]) -> Interval:
    """Extend an interval to the change without Python functions that only one side recorded."""
    base, new = (max(1 - most_of_python_ns(it) / max(it.mean_ns, 1.0), _LEAST_LEFT) for it in pair)
    low, high = ((1 + end) * new / base - 1 for end in interval)
    return _hull([interval, (low, high)])


def _hull(intervals: Sequence[Interval]) -> Interval:
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def _changes(base: Lengths, new: Lengths, sampling: Sampling) -> Interval | None:
    """Return the interval of the change of steps or runs, with that of their mean."""
    limits = sampling.limits(base, new)
    if limits is None:
        return None
    change = fmean(new.values()) / max(fmean(base.values()), 1.0) - 1
    return _hull([limits, (change, change)])


def _at_costs(sides: Sequence[Runs], sampling: Sampling, *, from_none: bool) -> list[Interval]:
    """Return the interval of the change at each recording cost."""
    found: list[Interval] = []
    for cost_ns in _costs_ns(sides, from_none=from_none):
        for scale in product(*(_scales(side, cost_ns) for side in sides)):
            lengths = [_lengths(side, cost_ns, by) for side, by in zip(sides, scale, strict=True)]
            found += filter(None, [_changes(lengths[0], lengths[1], sampling)])
    return found


def _as_recorded(sides: Sequence[Runs]) -> Interval:
    """Return the change of the mean step as recorded."""
    base_ns, new_ns = (median(side.recorded_means_ns) for side in sides)
    change = new_ns / max(base_ns, 1.0) - 1
    return change, change


def _costs_ns(sides: Sequence[Runs], *, from_none: bool) -> list[float]:
    """Return the recording costs of an operator at which the change is computed.

    The most of each trace bounds the same cost, so the smallest of them does.
    """
    import numpy as np

    curves = [_curve(trace) for side in sides for run in side.runs for trace in run]
    known = [curve for curve in curves if curve is not _NO_CURVE]
    if not known:
        return [0.0]
    first = 0.0 if from_none else min(curve.costs_ns[1] for curve in known)
    most = max(first, min(curve.costs_ns[-1] for curve in known))
    return [float(cost_ns) for cost_ns in np.linspace(first, most, N_COSTS)]


def _scales(side: Runs, cost_ns: float) -> list[float]:
    """Return the factors that are possible on the steps of a side at a recording cost.

    Times that were measured without the profiler leave a range. A side that does not tell what
    recording cost takes the cost of the other side, of which an unknown part delayed its steps.
    """
    [mean_ns, *_] = side.means_ns
    if side.range_ns is not None and side.range_source == "measured":
        return [it / max(mean_ns, 1.0) for it in side.range_ns]
    shares = [_least_share(trace, cost_ns) for run in side.runs for trace in run]
    return [1.0] if min(shares) == 1 else [1.0, min(shares)]


def _least_share(side: Side, cost_ns: float) -> float:
    """Return the least of a step that is left at a cost which the trace itself does not tell."""
    cost = side.trace.removed_cost
    if cost is None or cost["status"] != "unknown" or not (side.has_steps and cost_ns):
        return 1.0
    n_events = side.events.filter(one_of("kind", _RECORDED)).height / side.n_steps
    return max(1 - _DEAREST * cost_ns * n_events / max(side.mean_ns, 1.0), _LEAST_LEFT)


def _lengths(side: Runs, cost_ns: float | None, by: float = 1.0) -> Lengths:
    """Return the length of each run, or of each step of the only run, at a recording cost.

    None is the most likely cost of each trace.
    """
    runs = [_run_lengths(run, cost_ns) for run in side.runs]
    if len(runs) == 1:
        return {step: by * length for step, length in runs[0].items()}
    return {number: by * fmean(run.values()) for number, run in enumerate(runs)}


def _run_lengths(run: Sequence[Side], cost_ns: float | None) -> Lengths:
    """Return the length of each step of a run at a recording cost."""
    return joint_lengths(
        [
            dict(zip(side.steps["step"].to_list(), _side_lengths(side, cost_ns), strict=True))
            for side in run
        ]
    )


def _side_lengths(side: Side, cost_ns: float | None) -> list[float]:
    """Return the length of each step of a trace at a recording cost."""
    curve = _curve(side)
    usual = list(map(float, side.lengths_ns))
    if cost_ns is None or curve is _NO_CURVE:
        return usual
    share, at_usual = curve.share(cost_ns), curve.share(curve.usual_ns)
    if cost_ns >= curve.usual_ns or at_usual >= 1:
        return [length * share / at_usual for length in usual]
    part = (1 - share) / (1 - at_usual)
    pairs = zip(side.recorded_lengths_ns, usual, strict=True)
    return [recorded + part * (now - recorded) for recorded, now in pairs]


def _curve(side: Side) -> _Curve:
    """Return the length of a step at each recording cost, as far as the core has solved it.

    A time that is given or measured is the only known one.
    """
    cost = side.trace.removed_cost
    if cost is None or cost["status"] != "estimated" or not side.has_steps:
        return _NO_CURVE
    recorded_ns, usual_ns = cost["recorded_step_ns"], cost["step_ns"]
    least_ns, most_ns = cost["least_step_ns"], cost["most_step_ns"]
    operator_ns = _operator_cost_ns(cost["classes"])
    if operator_ns is None or not (recorded_ns and usual_ns and least_ns and most_ns):
        return _NO_CURVE
    lengths = (recorded_ns, most_ns, usual_ns, least_ns)
    shares = [min(1.0, length / recorded_ns) for length in lengths]
    falling = tuple(min(shares[: place + 1]) for place in range(len(shares)))
    costs_ns = (0.0, *(part * operator_ns for part in _OF_COST))
    return _Curve(costs_ns, falling, costs_ns[2])


def _operator_cost_ns(classes: Sequence[ClassCost]) -> float | None:
    """Return the estimated cost of an operator; without operators, in proportion to a launch."""
    rows = [row for row in classes if row["event_class"] in _IN_OPERATORS]
    rows.sort(key=lambda row: (row["event_class"] != "launch", row["count"]))
    return rows[-1]["cost_ns"] / _IN_OPERATORS[rows[-1]["event_class"]] if rows else None


def _change_on_one_machine(
    sides: Sequence[Runs],
    pair: tuple[Side, Side],
    machine: Machine | None,
    *,
    are_timed: bool,
) -> float | None:
    """Return the change if the new side's host is as fast as the base's; None if it is."""
    if machine is None or abs(machine.ratio - 1) < _SAME_SPEED:
        return None
    share = mean_on_one_machine_ns(pair[1], machine) / max(pair[1].mean_ns, 1.0)
    base_ns, new_ns = (
        float(median(side.timed_ns if are_timed else side.means_ns)) for side in sides
    )
    return share * new_ns / max(base_ns, 1.0) - 1


def _spread_of(lengths: Lengths) -> float:
    """Return the robust spread of the steps, or of the runs, of a side."""
    return math.expm1(robust_spread([math.log(max(it, 1.0)) for it in lengths.values()]))
