"""Compares two sides: what changed, by how much, and whether it matters."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Final, Literal

from longpole.analyses.diff.account import effect_ns, path_changes, path_times
from longpole.analyses.diff.answer import Diff
from longpole.analyses.diff.changes import work_of
from longpole.analyses.diff.counts import counts_of, peak_memory_bytes, shapes_of
from longpole.analyses.diff.judgement import (
    FEWEST,
    Judgement,
    if_both,
    judge_cost,
    judge_machine,
    judge_runs,
    judge_step,
    judge_steps,
    judge_timings,
)
from longpole.analyses.diff.machine import machine_of, means_on_one_machine_ns
from longpole.analyses.diff.predictions import predictions
from longpole.analyses.diff.rewrites import contents_of, same_kernels
from longpole.analyses.diff.sentences import sentence
from longpole.analyses.diff.setups import differing, setups_of
from longpole.analyses.diff.sides import side_of
from longpole.analyses.diff.values import Change, DiffSide
from longpole.errors import WindowError
from longpole.recording_cost import timing_notes
from longpole.statistics.ranks import robust_spread
from longpole.trace import Trace
from longpole.traces.trace_set import TraceSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from longpole.analyses.diff.changes import Group, Work
    from longpole.analyses.diff.machine import Machine
    from longpole.analyses.diff.setups import Setup
    from longpole.analyses.diff.sides import Side
    from longpole.analyses.diff.values import Counts, PathChange, Prediction
    from longpole.damage import Damage

__all__ = ["diff", "diff_steps"]

_GATE: Final = 0.03

# With less in common, two traces are from different programs. Runs of one program on two devices
# share their operators; two models of one library share only the common operators.
_LEAST_SIMILAR: Final = 0.4

# With fewer common steps there is no usable sample.
_FEWEST_STEPS: Final = 4

_DEVICE_KINDS: Final = ("kernel", "copy", "communication")

# Maximum number of changes whose effect is computed with the graph.
_MOST_EFFECTS: Final = 8


# The causes that these remedies address also slow down operators that did not change.
_SLOW_ALL_OPERATORS: Final = frozenset({"interpreter_lock", "host_threads"})

_UNRELATED: Final = (
    "Steps of two different programs are not comparable, so no gate applies. If both do the same "
    "work, add --same-program."
)
_DAMAGED: Final = "A trace is damaged: lost records cannot be distinguished from changes."


@dataclass(frozen=True)
class _Runs:
    """The runs of one side, each with the traces of its ranks."""

    runs: tuple[tuple[Side, ...], ...]

    @property
    def traces(self) -> list[Trace]:
        """Return the traces of all runs."""
        return [side.trace for run in self.runs for side in run]

    @property
    def damage(self) -> tuple[Damage, ...]:
        """Return the damage of its traces."""
        return tuple(trace.damage for trace in self.traces if trace.damage)

    @property
    def means_ns(self) -> list[float]:
        """Return the mean step of each run."""
        return [sum(run.values()) / len(run) for run in map(_lengths_ns, self.runs)]

    @property
    def recorded_means_ns(self) -> list[float]:
        """Return the mean step of each run as recorded."""
        recorded = [[max(side.recorded_mean_ns for side in run)] for run in self.runs]
        return [sum(run) for run in recorded]

    @property
    def timed_ns(self) -> tuple[int, ...]:
        """Return the steps of the only trace that were timed without the profiler."""
        traces = [side for run in self.runs for side in run]
        return traces[0].timed_ns if len(traces) == 1 else ()

    @property
    def range_ns(self) -> tuple[float, float] | None:
        """Return the range of the mean step of the first run: that of its slowest rank.

        None if the times without the profiler are certain.
        """
        ranges = [side.range_ns or (side.mean_ns, side.mean_ns) for side in self.runs[0]]
        if not any(side.range_ns for side in self.runs[0]):
            return None
        least, most = zip(*ranges, strict=True)
        return max(least), max(most)

    @property
    def range_source(self) -> Literal["estimated", "measured"] | None:
        """Return where that range comes from: an estimate if that of any rank is one."""
        found = {side.range_source for side in self.runs[0]} - {None}
        return None if not found else "measured" if found == {"measured"} else "estimated"

    @property
    def usual(self) -> tuple[Side, ...]:
        """Return the run with the median mean step."""
        means = self.means_ns
        order = sorted(range(len(means)), key=lambda run: (means[run], run))
        return self.runs[order[(len(order) - 1) // 2]]


def diff(
    base: Trace | TraceSet | Sequence[Trace | TraceSet],
    new: Trace | TraceSet | Sequence[Trace | TraceSet],
    *,
    gate: float = _GATE,
    step_name: str | None = None,
    data_load: str | None = None,
    as_recorded: bool = False,
    step_times_ns: tuple[int | None, int | None] = (None, None),
    is_same_program: bool = False,
) -> Diff:
    """Compare two sides, and judge whether the change matters.

    Parameters
    ----------
    base, new
        A trace, the ranks of a run from `read_traces`, or several of these: traces of different
        ranks are one run, traces of the same rank several runs. Ranks of which a trace is severely
        damaged are left out if others are whole. Shapes are compared if the traces were read with
        `args=["Input Dims"]`.
    gate
        The smallest change of the mean step that matters, as a fraction.
    step_name, data_load
        As for `Trace.verdict`.
    as_recorded
        Compare steps as recorded, including the profiler's overhead.
    step_times_ns
        The time of a step of each side without the profiler, if known.
    is_same_program
        Compare the steps even if little work corresponds: both sides do the same work by other
        kernels and operators.

    Raises
    ------
    WindowError
        A trace has no event with a duration.
    ValueError
        A side has no trace, the gate is not a fraction, a pattern is not a regular expression, or
        no recording overhead explains a step time.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 100)).read()
    >>> diff(trace, trace).verdict
    'neutral'
    """
    if not 0 <= gate < 1:
        message = f"a gate is a share from 0 to 1, not {gate}"
        raise ValueError(message)
    window: dict[str, Any] = {"step_name": step_name, "data_load": data_load}
    given, left_out = _whole_ranks([_traces_of(side) for side in (base, new)])
    sides = [
        _runs_of(side, window | {"as_recorded": as_recorded, "step_time_ns": step_time_ns})
        for side, step_time_ns in zip(given, step_times_ns, strict=True)
    ]
    sides = _counted_alike(sides)
    old, now = _details(sides[0].usual, sides[1].usual)
    work = work_of(old, now)
    evidence = _evidence((old, now), work, sides, is_same_program=is_same_program)
    evidence = replace(evidence, left_out=left_out)
    judgement = _judged(sides, work, gate, evidence)
    return _answer((old, now), work, judgement, gate, sides, evidence=evidence)


def diff_steps(
    trace: Trace,
    step: int,
    against: int | None = None,
    *,
    gate: float = _GATE,
    step_name: str | None = None,
    data_load: str | None = None,
    as_recorded: bool = False,
) -> Diff:
    """Explain why one step is longer or shorter than the others of its run.

    Parameters
    ----------
    trace
        The run.
    step
        The number of the step.
    against
        The number of another step; by default all other complete steps, with the path of the step
        of median length.
    gate, step_name, data_load, as_recorded
        As for `diff`.

    Raises
    ------
    WindowError
        The step does not exist, or is the only one.
    """
    window: dict[str, Any] = {"step_name": step_name, "data_load": data_load}
    trace = trace if as_recorded else trace.without_profiler(**window)
    usual = side_of(trace, **window).steps["step"].to_list()
    others = tuple(number for number in usual if number != step)
    if against is None and not others:
        message = "the trace has no other complete step to compare with"
        raise WindowError(message)
    base = side_of(trace, others if against is None else (against,), **window)
    new = side_of(trace, (step,), **window)
    work = work_of(base, new)
    judgement = judge_step(base.lengths_ns, new.mean_ns, gate)
    sides = [_Runs(((base,),)), _Runs(((new,),))]
    evidence = _Evidence(
        is_one_program=True,
        predictions=(),
        counts=counts_of(base, new),
        path=path_changes(base, new),
        is_one_recording=True,
    )
    return _answer((base, new), work, judgement, gate, sides, evidence=evidence)


def _whole_ranks(sides: list[list[Trace]]) -> tuple[list[list[Trace]], tuple[int, ...]]:
    """Leave out the ranks of which a trace is severely damaged, if others are whole."""
    damaged = {
        trace.rank for side in sides for trace in side if trace.damage and trace.damage.is_grave
    }
    kept = [[trace for trace in side if trace.rank not in damaged] for side in sides]
    ranks = sorted(rank for rank in damaged if rank is not None)
    if len(ranks) < len(damaged) or not all(kept):
        return sides, ()
    return kept, tuple(ranks)


def _runs_of(given: Sequence[Trace], window: dict[str, Any]) -> _Runs:
    """Sort traces into runs: the first of every rank, then the second of every rank, and so on."""
    if not given:
        message = "each side needs a trace"
        raise ValueError(message)
    by_rank: dict[int | None, list[Side]] = {}
    for trace in given:
        by_rank.setdefault(trace.rank, []).append(side_of(trace, **window))
    if len({len(each) for each in by_rank.values()}) > 1:
        message = "every rank needs a trace of every run"
        raise ValueError(message)
    ranks = sorted(by_rank, key=lambda rank: -1 if rank is None else rank)
    return _Runs(tuple(zip(*(by_rank[rank] for rank in ranks), strict=True)))


def _counted_alike(sides: list[_Runs]) -> list[_Runs]:
    """Keep the step numbers that a run of each side has in common, if that keeps most of them.

    The first step of a recording that has a step before it is often longer than the others: it must
    not count on one side alone.
    """
    if any(len(runs.runs) != 1 or len(runs.runs[0]) != 1 for runs in sides):
        return sides
    old, new = (runs.runs[0][0] for runs in sides)
    numbers = [set(side.steps["step"]) if side.unit == "step" else set() for side in (old, new)]
    common = numbers[0] & numbers[1]
    fewest = min(map(len, numbers))
    if numbers[0] == numbers[1] or len(common) < _FEWEST_STEPS or 2 * len(common) < fewest:
        return sides
    return [_Runs(((side.with_steps(common),),)) for side in (old, new)]


def _traces_of(side: Trace | TraceSet | Sequence[Trace | TraceSet]) -> list[Trace]:
    """Return the traces of one side; a run of ranks is read again."""
    found: list[Trace] = []
    for part in [side] if isinstance(side, Trace | TraceSet) else side:
        if isinstance(part, TraceSet):
            found += [part.trace(rank) for rank in part.rank_numbers]
        else:
            found.append(part)
    return found


def _lengths_ns(run: Sequence[Side]) -> dict[int, int]:
    """Return the length of each step of a run: that of its longest rank."""
    of_ranks = [dict(zip(side.steps["step"], side.lengths_ns, strict=True)) for side in run]
    common = set.intersection(*(set(each) for each in of_ranks))
    if not common:
        return of_ranks[0]
    return {step: max(each[step] for each in of_ranks) for step in sorted(common)}


def _details(base: Sequence[Side], new: Sequence[Side]) -> tuple[Side, Side]:
    """Choose the rank whose steps changed most, among those on both sides."""
    others = {side.trace.rank: side for side in new}
    pairs = [(side, others[side.trace.rank]) for side in base if side.trace.rank in others]
    if not pairs:
        return base[0], new[0]
    return max(pairs, key=lambda pair: abs(pair[1].mean_ns - pair[0].mean_ns))


@dataclass(frozen=True)
class _Evidence:
    """The evidence that both sides are one program, and the remedies that were applied to it."""

    is_one_program: bool
    predictions: tuple[Prediction, ...]
    counts: tuple[Counts, ...]
    path: tuple[PathChange, ...] = ()
    machine: Machine | None = None
    change_range: tuple[float, float] | None = None
    """Range of the change that the estimated cost of recording leaves, if any."""
    is_one_recording: bool = False
    left_out: tuple[int, ...] = ()
    """Ranks that are left out, because a trace is damaged."""
    is_stated: bool = False
    """Whether the caller says that both sides are one program, though little work corresponds."""

    @property
    def device_change_ns(self) -> float:
        """Change of the path by GPU work that takes longer or shorter, which recording does not."""
        parts = [
            sorted((row.change_ns, (row.new_work_ns or 0.0) - (row.base_work_ns or 0.0)), key=abs)
            for row in self.path
            if row.kind in _DEVICE_KINDS
        ]
        return sum(smaller for smaller, larger in parts if smaller * larger > 0)


def _evidence(
    pair: tuple[Side, Side], work: Work, sides: list[_Runs], *, is_same_program: bool
) -> _Evidence:
    """Compare the launches, the kernels, and the signatures of applied remedies."""
    if any(it.is_grave for side in sides for it in side.damage):
        return _Evidence(is_one_program=True, predictions=(), counts=())
    base, new = pair
    machine = _machine(base, new, sides) if _are_single(sides) else None
    counts = counts_of(base, new)
    contents = (contents_of(base), contents_of(new))
    is_alike = _is_related(work) or same_kernels(*contents)
    measured = None
    if base.mean_ns and not differing(setups_of(*(side.traces for side in sides))):
        lengths_ns = _timed_or_mean_ns((base, new), sides)
        measured = 1 - lengths_ns[1] * _share_on_one_machine(new, machine) / lengths_ns[0]
    found = predictions(
        base.verdict,
        new.verdict,
        measured,
        counts,
        contents=contents,
        is_rewritten=not (is_alike or is_same_program),
    )
    return _Evidence(
        is_one_program=is_alike or is_same_program or bool(found),
        is_stated=is_same_program and not is_alike,
        predictions=found,
        counts=counts,
        path=path_changes(*pair),
        machine=machine,
        change_range=_cost_changes(sides, work),
    )


def _share_on_one_machine(side: Side, machine: Machine | None) -> float:
    """Return the mean step at the speed of the base's machine, divided by the mean step."""
    if machine is None or not machine.differs or not side.mean_ns:
        return 1.0
    return means_on_one_machine_ns(side, machine)[0] / side.mean_ns


def _timed_or_mean_ns(pair: tuple[Side, Side], sides: list[_Runs]) -> tuple[float, float]:
    """Return the mean step of each side: as timed without the profiler if both were."""
    if _are_timed(sides):
        return float(median(sides[0].timed_ns)), float(median(sides[1].timed_ns))
    return pair[0].mean_ns, pair[1].mean_ns


def _machine(base: Side, new: Side, sides: list[_Runs]) -> Machine | None:
    """Compare the speed of unchanged operators, if only the machine can have changed it.

    If only one side was timed without the profiler, or a time is given, it does not depend on how
    fast the recording ran. Threads that compete for the interpreter lock or for cores make all
    operators slower.
    """
    named = {row.remedy for side in (base, new) for row in side.verdict.remedies if row.named}
    is_partly_timed = (base.is_timed or new.is_timed) and not _are_timed(sides)
    if is_partly_timed or named & _SLOW_ALL_OPERATORS:
        return None
    return machine_of(base, new)


def _are_timed(sides: list[_Runs]) -> bool:
    """Whether steps of both sides were timed without the profiler, often enough to compare them."""
    return all(len(side.timed_ns) >= FEWEST for side in sides)


def _are_single(sides: list[_Runs]) -> bool:
    """Whether each side is one run."""
    return all(len(side.runs) == 1 for side in sides)


def _judged(sides: list[_Runs], work: Work, gate: float, evidence: _Evidence) -> Judgement:
    base, new = sides
    if any(it.is_grave for side in sides for it in side.damage):
        return Judgement("inconclusive", None, (_DAMAGED,))
    lengths = [[_lengths_ns(run) for run in side.runs] for side in sides]
    is_alike = lengths[0] == lengths[1] and base.timed_ns == new.timed_ns
    if is_alike and not work.n_differences:
        return Judgement("neutral", (0.0, 0.0), ("The two sides do not differ in anything.",))
    if not evidence.is_one_program:
        return Judgement("inconclusive", None, (_UNRELATED,))
    if _are_single(sides):
        return _of_single_runs(sides, work, gate, evidence)
    means = base.means_ns, new.means_ns
    change = median(means[1]) / max(median(means[0]), 1.0) - 1
    return judge_runs(means[0], means[1], gate, change=change)


def _of_single_runs(sides: list[_Runs], work: Work, gate: float, evidence: _Evidence) -> Judgement:
    """Judge one run of each side by its timed steps, or else by its recorded steps."""
    base, new = sides
    is_same = _is_same_work(work)
    if _are_timed(sides):
        found = judge_timings(base.timed_ns, new.timed_ns, gate, is_same_work=is_same)
    else:
        lengths = _lengths_ns(base.runs[0]), _lengths_ns(new.runs[0])
        change = new.means_ns[0] / max(base.means_ns[0], 1.0) - 1
        found = judge_steps(*lengths, gate, change=change, is_same_work=is_same)
    machine = evidence.machine
    if machine is not None and machine.differs:
        on_one_machine = _on_one_machine(found, sides, machine, gate)
        found = if_both(found, on_one_machine) if _are_timed(sides) else on_one_machine
    known = evidence.device_change_ns / max(base.means_ns[0], 1.0)
    is_estimated = any(side.range_source == "estimated" for side in sides)
    changes = evidence.change_range
    return judge_cost(found, changes, known=known, gate=gate, is_estimated=is_estimated)


def _cost_changes(sides: list[_Runs], work: Work) -> tuple[float, float] | None:
    """Return the range of the change that the estimated cost of recording leaves, if any.

    Sides that were recorded alike are compared at the same cost: the least, the most, and the
    estimated one. If they do the same work, only the host can differ, and the cost of one side may
    be another one.
    """
    if _are_timed(sides):
        return None
    if not (_are_single(sides) and any(side.range_ns for side in sides)):
        return None
    base, new = (side.range_ns or (side.means_ns[0],) * 2 for side in sides)
    if not _are_recorded_alike(sides) or _rests_on_host(work):
        base = base[1], base[0]
    pairs = [*zip(base, new, strict=True), tuple(side.means_ns[0] for side in sides)]
    changes = [after / max(before, 1.0) - 1 for before, after in pairs]
    return min(changes), max(changes)


def _are_recorded_alike(sides: list[_Runs]) -> bool:
    """Whether one version of a profiler recorded both sides on one machine, with the same options.

    Recording Python functions is the option that costs most.
    """
    traces = [trace for side in sides for trace in side.traces]
    has_python = {(trace.events["kind"] == "python").any() for trace in traces}
    setups = setups_of(*(side.traces for side in sides))
    return len(has_python) == 1 and not any(setup.differs for setup in setups)


def _on_one_machine(
    found: Judgement, sides: list[_Runs], machine: Machine, gate: float
) -> Judgement:
    """Judge the change that remains if the new side's host is as fast as the base's."""
    [[old, *_]], [[new, *_]] = (side.runs for side in sides)
    base_ns, new_ns = _timed_or_mean_ns((old, new), sides)
    means_ns = means_on_one_machine_ns(new, machine)
    shares = [mean_ns / max(new.mean_ns, 1.0) for mean_ns in means_ns]
    middle, least, most = (share * new_ns / max(base_ns, 1.0) for share in shares)
    interval = found.interval or (0.0, 0.0)
    half = (interval[1] - interval[0]) / 2 * shares[0]
    return judge_machine(
        (least - 1 - half, most - 1 + half), middle - 1, gate, found, machine.ratio
    )


def _answer(
    pair: tuple[Side, Side],
    work: Work,
    judgement: Judgement,
    gate: float,
    sides: list[_Runs],
    *,
    evidence: _Evidence,
) -> Diff:
    base, new = (_facts(side, runs) for side, runs in zip(pair, sides, strict=True))
    if evidence.is_one_recording:
        base, new = (replace(side, range_ns=None, range_source=None) for side in (base, new))
    elif _are_timed(sides):
        base, new = (_timed(side, runs) for side, runs in zip((base, new), sides, strict=True))
    is_lost = any(it.is_grave for it in (*base.damage, *new.damage))
    change = new.mean_ns / base.mean_ns - 1 if base.mean_ns else None
    setups = setups_of(*(side.traces for side in sides))
    changes = () if is_lost else _changes(pair, work)
    found = Diff(
        verdict=judgement.outcome,
        sentence="",
        reasons=(*_machine_reason(setups), *judgement.reasons, *_timings(pair)),
        gate=gate,
        change=change,
        interval=judgement.interval,
        is_related=_is_related(work),
        is_one_program=evidence.is_one_program,
        is_stated=evidence.is_stated,
        is_one_recording=evidence.is_one_recording,
        left_out_ranks=evidence.left_out,
        similarity=work.similarity,
        n_differences=work.n_differences,
        base=base,
        new=new,
        setups=setups,
        changes=changes,
        path=evidence.path,
        counts=evidence.counts,
        predictions=evidence.predictions,
        machine=evidence.machine,
        change_on_one_machine=judgement.change,
        rests_on_host=_are_single(sides) and _rests_on_host(work),
        change_range=evidence.change_range,
    )
    return replace(found, sentence=sentence(found))


def _machine_reason(setups: Iterable[Setup]) -> list[str]:
    differ = [f"{setup.what}s" for setup in differing(setups)]
    if not differ:
        return []
    what = " and ".join(differ)
    return [f"The sides have different {what}: the verdict is about the step, not the program."]


def _timings(pair: tuple[Side, Side]) -> list[str]:
    """Return what is wrong with the steps of a side that were timed without the profiler."""
    costs = [side.trace.removed_cost for side in pair]
    base, new = ([] if cost is None else timing_notes(cost) for cost in costs)
    if base == new:  # as of two steps of one recording
        return base
    return [
        f"Of the {name}: {told[0].lower()}{told[1:]}"
        for name, notes in (("base", base), ("new side", new))
        for told in notes
    ]


def _facts(side: Side, runs: _Runs) -> DiffSide:
    means = runs.means_ns
    logs = [math.log(max(length, 1)) for length in side.lengths_ns]
    return DiffSide(
        n_runs=len(runs.runs),
        ranks=tuple(each.trace.rank for each in runs.runs[0]),
        rank=side.trace.rank,
        unit=side.unit,
        n_steps=side.n_steps,
        steps=tuple(side.steps["step"]) if side.has_steps else (),
        mean_ns=median(means),
        recorded_mean_ns=median(runs.recorded_means_ns),
        range_ns=runs.range_ns if len(runs.runs) == 1 else None,
        range_source=runs.range_source if len(runs.runs) == 1 else None,
        timed_ns=(),
        given_ns=side.given_ns,
        median_ns=median(side.lengths_ns),
        step_noise=math.expm1(robust_spread(logs)) if len(logs) > 1 else None,
        run_noise=math.expm1(robust_spread([math.log(max(mean, 1.0)) for mean in means]))
        if len(means) > 1
        else None,
        verdict=side.verdict,
        damage=runs.damage,
        peak_memory_bytes=peak_memory_bytes(side),
    )


def _timed(side: DiffSide, runs: _Runs) -> DiffSide:
    """Return a side with the length of its steps as timed without the profiler."""
    times_ns = runs.timed_ns
    return replace(
        side,
        mean_ns=median(times_ns),
        range_ns=(min(times_ns), max(times_ns)),
        range_source="measured",
        median_ns=median(times_ns),
        step_noise=math.expm1(robust_spread([math.log(time_ns) for time_ns in times_ns])),
        timed_ns=times_ns,
    )


def _is_same_work(work: Work) -> bool:
    """Whether both sides do the same work equally often, regardless of its time.

    Runtime API calls only need to be the same: at the ends of steps, their number varies.
    """
    return all(
        group.relation in {"same", "moved"}
        and (
            group.has_same_counts
            or (group.kind == "runtime" and group.counts[0].any() and group.counts[1].any())
        )
        for group in work.groups
    )


def _rests_on_host(work: Work) -> bool:
    """Whether both sides do the same work equally often, with unchanged device times."""
    is_same = all(group.has_same_counts for group in work.groups)
    devices = [group for group in work.groups if group.kind in _DEVICE_KINDS]
    base_ns, new_ns = (
        sum(float(group.times_ns[side].mean()) for group in devices) for side in (0, 1)
    )
    return is_same and abs(new_ns - base_ns) <= _GATE * max(base_ns, 1.0)


def _is_related(work: Work) -> bool:
    return work.similarity >= _LEAST_SIMILAR


def _changes(pair: tuple[Side, Side], work: Work) -> tuple[Change, ...]:
    """Sort the changes: those beyond the noise first, by their effect on the step."""
    paths = [path_times(side, number, work.groups) for number, side in enumerate(pair)]
    worth = _worth_timing(work) if _is_related(work) else []
    effects = {row: effect_ns(*pair, work.groups[row]) for row in worth}
    rows = [
        _change(pair, work, row, (paths[0][row], paths[1][row]), effects.get(row))
        for row in range(len(work.groups))
    ]
    return tuple(sorted(rows, key=_order))


def _worth_timing(work: Work) -> list[int]:
    """Choose the changes whose effect is computed: those beyond the noise, or else the closest."""
    moved = [row for row, group in enumerate(work.groups) if _size(group)]
    rows = [row for row in moved if work.stands_out[row]]
    rows.sort(key=lambda row: -_size(work.groups[row]))
    if rows:
        return rows[:_MOST_EFFECTS]
    moved.sort(key=lambda row: (-abs(work.t[row] or 0.0), -_size(work.groups[row])))
    return moved[: _MOST_EFFECTS // 2]


def _size(group: Group) -> float:
    return abs(float(group.times_ns[1].mean() - group.times_ns[0].mean()))


def _order(change: Change) -> tuple[object, ...]:
    if change.stands_out:
        effect = abs(change.effect_ns or 0.0)
        return (False, -effect, -abs(change.change_ns), change.kind, change.name)
    return (True, -abs(change.t or 0.0), -abs(change.change_ns), change.kind, change.name)


def _change(
    pair: tuple[Side, Side],
    work: Work,
    row: int,
    paths: tuple[float, float],
    effect: float | None,
) -> Change:
    group = work.groups[row]
    shapes = [
        shapes_of(side, group.kind, group.events[number]) if group.relation == "reshaped" else ()
        for number, side in enumerate(pair)
    ]
    return Change(
        kind=group.kind,
        relation=group.relation,
        base_names=group.base_names,
        new_names=group.new_names,
        base_ns=float(group.times_ns[0].mean()),
        new_ns=float(group.times_ns[1].mean()),
        base_count=float(group.counts[0].mean()),
        new_count=float(group.counts[1].mean()),
        base_path_ns=paths[0],
        new_path_ns=paths[1],
        t=work.t[row],
        stands_out=work.stands_out[row],
        effect_ns=effect,
        base_shapes=shapes[0],
        new_shapes=shapes[1],
        base_event=_longest(pair[0], group.events[0]),
        new_event=_longest(pair[1], group.events[1]),
    )


def _longest(side: Side, events: NDArray[np.uint32]) -> int | None:
    """Return the longest of some events."""
    return int(events[side.durations_ns[events].argmax()]) if len(events) else None
