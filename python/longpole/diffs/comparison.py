"""Compares two sides: what changed, by how much, and whether it matters."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Final

from longpole.diffs.account import path_changes
from longpole.diffs.answer import Diff
from longpole.diffs.changes import work_of
from longpole.diffs.counts import counts_of, peak_memory_bytes
from longpole.diffs.effects import changes_of
from longpole.diffs.evidence import (
    Evidence,
    are_single,
    are_timed,
    evidence_of,
)
from longpole.diffs.interval import intervals_of
from longpole.diffs.judgement import Judgement, judge, judge_step, too_few
from longpole.diffs.late import late_rank
from longpole.diffs.predictions import compared
from longpole.diffs.runs import (
    Runs,
    counted_alike,
    details,
    lengths_ns,
    runs_of,
    shaped_alike,
    traces_of,
    whole_ranks,
)
from longpole.diffs.samples import FEWEST
from longpole.diffs.sentences import sentence
from longpole.diffs.setups import differing, setups_of
from longpole.diffs.sides import side_of
from longpole.diffs.values import DiffSide
from longpole.engine.question import Question
from longpole.engine.recording_cost import timing_notes
from longpole.errors import WindowError
from longpole.rows.statistics.ranks import robust_spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Unpack

    from longpole.diffs.changes import Work
    from longpole.diffs.machine import Threads
    from longpole.diffs.setups import Setup
    from longpole.diffs.sides import Side
    from longpole.engine.question import QuestionParts
    from longpole.jobs.trace_set import TraceSet
    from longpole.trace.trace import Trace

_GATE: Final = 0.03

# Repetitions of which most kernels are this many times as frequent are another part of a program.
_OTHER_PART: Final = 1.6

# A step is an outlier if it takes longer than this multiple of the median step.
_OUTLIER: Final = 1.5

_UNRELATED: Final = (
    "Steps of two different programs are not comparable, so no gate applies. If both do the same "
    "work, add --same-program."
)
_NOTHING_TO_COMPARE: Final = (
    "Without launches or operators nothing shows that both sides do the same work, so no gate "
    "applies. If they do, add --same-program."
)
_OTHER_UNITS: Final = (
    "The repetitions of GPU activities may be other parts of the program on each side, so no gate "
    "applies. Mark the steps, or say with --window what to compare."
)
_PYTHON_ON_ONE_SIDE: Final = (
    "Only one side records Python functions, which takes time. Changes of host work that this may "
    "have made are not named."
)
_DAMAGED: Final = "A trace is damaged: lost records cannot be distinguished from changes."


def diff(
    base: Trace | TraceSet | Sequence[Trace | TraceSet],
    new: Trace | TraceSet | Sequence[Trace | TraceSet],
    *,
    gate: float = _GATE,
    as_recorded: bool = False,
    step_times_ns: tuple[int | None, int | None] = (None, None),
    is_same_program: bool = False,
    step: int | str | None = None,
    **question: Unpack[QuestionParts],
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
    as_recorded
        Compare steps as recorded, including the profiler's overhead.
    step_times_ns
        The time of a step of each side without the profiler, if known.
    is_same_program
        Compare the steps even if little work corresponds: both sides do the same work by other
        kernels and operators.
    step, **question
        The window of both sides and what loads data, as for `longpole.Question`; by default all
        complete steps. Times of `between` count from the first event of each trace.

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
    given, left_out = whole_ranks([traces_of(side) for side in (base, new)])
    sides = [
        runs_of(side, _question(as_recorded, step_time_ns, step=step, **question))
        for side, step_time_ns in zip(given, step_times_ns, strict=True)
    ]
    sides = shaped_alike(counted_alike(sides))
    late = late_rank(sides, question.get("step_name"))
    old, now = details(sides[0].usual, sides[1].usual, None if late is None else late.rank)
    work = work_of(old, now)
    evidence = evidence_of((old, now), work, sides, is_same_program=is_same_program)
    evidence = replace(evidence, left_out=left_out, late_rank=late)
    judgement = _judged(sides, (old, now), work, gate, evidence)
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
        The number of another step; by default all other complete steps that are not much longer or
        shorter than their median, with the path of the step of median length.
    gate, step_name, data_load, as_recorded
        As for `diff`.

    Raises
    ------
    WindowError
        The step does not exist, or is the only one.
    """
    asked = Question(step_name=step_name, data_load=data_load, as_recorded=as_recorded)
    usual = side_of(trace, asked).steps["step"].to_list()
    others = tuple(number for number in usual if number != step)
    if against is None and not others:
        message = "the trace has no other complete step to compare with"
        raise WindowError(message)
    base = side_of(trace, asked, others if against is None else (against,))
    unusual = _unusual(base)
    base = base.with_steps(set(base.steps["step"]) - set(unusual))
    new = side_of(trace, asked, (step,))
    work = work_of(base, new)
    judgement = judge_step(base.lengths_ns, new.mean_ns, gate, unusual)
    sides = [Runs(((base,),)), Runs(((new,),))]
    evidence = Evidence(
        is_one_program=True,
        predictions=(),
        counts=counts_of(base, new),
        path=path_changes(base, new),
        is_one_recording=True,
    )
    return _answer((base, new), work, judgement, gate, sides, evidence=evidence)


def _question(
    as_recorded: bool,  # noqa: FBT001
    step_time_ns: int | None,
    **question: Any,
) -> Question:
    """Return what is asked about a side; times as recorded need no time of a step."""
    time_ns = None if as_recorded else step_time_ns
    return Question(step_time_ns=time_ns, as_recorded=as_recorded, **question)


def _judged(
    sides: list[Runs], pair: tuple[Side, Side], work: Work, gate: float, evidence: Evidence
) -> Judgement:
    if any(it.is_grave for side in sides for it in side.damage):
        return Judgement("inconclusive", None, (_DAMAGED,))
    base, new = sides
    lengths = [[lengths_ns(run) for run in side.runs] for side in sides]
    is_alike = lengths[0] == lengths[1] and base.timed_ns == new.timed_ns
    if is_alike and not work.n_differences:
        return Judgement("neutral", (0.0, 0.0), ("The two sides do not differ in anything.",))
    if not evidence.is_one_program:
        reason = _NOTHING_TO_COMPARE if work.similarity is None else _UNRELATED
        return Judgement("inconclusive", None, (reason,))
    if not evidence.is_stated and not _are_alike_units(pair, work):
        return Judgement("inconclusive", None, (_OTHER_UNITS,))
    are_runs = not are_single(sides)
    n_each = len(base.runs), len(new.runs)
    found = intervals_of(
        sides,
        pair,
        machine=evidence.machine,
        is_same_work=work.is_same,
        are_recorded_alike=evidence.are_recorded_alike,
    )
    if found is None:
        n_steps = len(lengths[0][0]), len(lengths[1][0])
        return too_few(n_each if are_runs else n_steps, are_runs=are_runs)
    return judge(found, gate, n_each=n_each, are_runs=are_runs)


def _are_alike_units(pair: tuple[Side, Side], work: Work) -> bool:
    """Whether the repetitions of both sides are evidently the same part of the program.

    Of marked steps that is certain. A repetition of one side may contain several of the other.
    """
    units = {side.unit for side in pair}
    if "repetition" not in units or len(units) > 1:
        return "repetition" not in units
    counts: dict[object, list[float]] = {}
    for group in work.groups:
        if group.kind == "kernel":
            both = counts.setdefault(group.base_names or group.new_names, [0.0, 0.0])
            both[0] += float(group.counts[0].mean())
            both[1] += float(group.counts[1].mean())
    ratios = [new / base for base, new in counts.values() if base and new]
    return not ratios or 1 / _OTHER_PART < median(ratios) < _OTHER_PART


def _answer(
    pair: tuple[Side, Side],
    work: Work,
    judgement: Judgement,
    gate: float,
    sides: list[Runs],
    *,
    evidence: Evidence,
) -> Diff:
    base, new = (_facts(side, runs) for side, runs in zip(pair, sides, strict=True))
    if evidence.is_one_recording:
        base, new = (replace(side, range_ns=None, range_source=None) for side in (base, new))
    elif are_timed(sides):
        base, new = (_timed(side, runs) for side, runs in zip((base, new), sides, strict=True))
    is_lost = any(it.is_grave for it in (*base.damage, *new.damage))
    change = new.mean_ns / base.mean_ns - 1 if base.mean_ns else None
    setups = setups_of(*(side.traces for side in sides))
    changes = () if is_lost else changes_of(pair, work)
    found = Diff(
        verdict=judgement.outcome,
        sentence="",
        reasons=(
            *_machine_reason(setups),
            *judgement.reasons,
            *_of_threads(evidence.threads),
            *([_PYTHON_ON_ONE_SIDE] if work.has_python_on_one_side else []),
            *([] if evidence.is_one_recording else _of_unknown_cost(pair)),
        ),
        gate=gate,
        change=change,
        recorded_change=_recorded_change(base, new),
        interval=judgement.interval,
        is_related=work.is_related,
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
        undone=evidence.undone,
        signs=evidence.signs,
        predictions=compared(evidence.predictions, judgement.interval),
        late_rank=evidence.late_rank,
        machine=evidence.machine,
        open_by=judgement.open_by,
    )
    return replace(found, sentence=sentence(found))


def _recorded_change(base: DiffSide, new: DiffSide) -> float | None:
    """Return the change of the mean step as recorded."""
    if not base.recorded_mean_ns:
        return None
    return new.recorded_mean_ns / base.recorded_mean_ns - 1


def _machine_reason(setups: Iterable[Setup]) -> list[str]:
    differ = [f"{setup.what}s" for setup in differing(setups)]
    if not differ:
        return []
    what = " and ".join(differ)
    return [f"The sides have different {what}: the verdict is about the step, not the program."]


def _of_unknown_cost(pair: tuple[Side, Side]) -> list[str]:
    """Warn that what recording cost is not removed, or is that of the other side."""
    costs = [side.trace.removed_cost for side in pair]
    known = ["unknown" if cost is None else cost["status"] for cost in costs]
    reasons = [cost["reason"] for cost in costs if cost is not None and cost["reason"]]
    if reasons and set(known) == {"unknown"}:
        return [f"What recording cost is unknown and not removed: {reasons[0]}."]
    if reasons and set(known) == {"unknown", "estimated"}:
        name = "base" if known[0] == "unknown" else "new side"
        told = f"The {name} does not show what recording cost ({reasons[0]})"
        return [f"{told}: the interval allows for the cost of the other side."]
    return []


def _of_threads(threads: Threads | None) -> list[str]:
    """Warn that operators that did not change became faster on some threads."""
    if threads is None:
        return []
    of_steps, others = (f"{ratio:.2f} times as long" for ratio in threads)
    told = (
        f"Operators that both sides call equally often took {of_steps} on the thread of the steps "
        f"and {others} on other threads: the machine or its load may have made part of the change."
    )
    return [told]


def _facts(side: Side, runs: Runs) -> DiffSide:
    means = runs.means_ns
    logs = [math.log(max(length, 1)) for length in side.lengths_ns]
    cost = side.trace.removed_cost
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
        outlier_steps=_outliers(side) if len(means) == 1 else (),
        mean_of_others_ns=_mean_of_others_ns(side),
        step_noise=math.expm1(robust_spread(logs)) if len(logs) > 1 else None,
        run_noise=math.expm1(robust_spread([math.log(max(mean, 1.0)) for mean in means]))
        if len(means) > 1
        else None,
        verdict=side.verdict,
        answer=side.answer,
        damage=runs.damage,
        notes=() if cost is None else tuple(timing_notes(cost)),
        peak_memory_bytes=peak_memory_bytes(side),
    )


def _unusual(side: Side) -> tuple[int, ...]:
    """Return the steps that are much longer or shorter than the median; none if few are not."""
    median_ns = median(side.lengths_ns)
    unusual = [
        step
        for step, ns in zip(side.steps["step"].to_list(), side.lengths_ns, strict=True)
        if not median_ns <= _OUTLIER * ns <= _OUTLIER**2 * median_ns
    ]
    return tuple(unusual) if side.n_steps - len(unusual) >= FEWEST else ()


def _outliers(side: Side) -> tuple[int, ...]:
    """Return the steps that are longer than 1.5 times the median."""
    most_ns = _OUTLIER * median(side.lengths_ns)
    steps = side.steps["step"].to_list()
    return tuple(it for it, ns in zip(steps, side.lengths_ns, strict=True) if ns > most_ns)


def _mean_of_others_ns(side: Side) -> float:
    """Return the mean length of the steps except the outliers."""
    most_ns = _OUTLIER * median(side.lengths_ns)
    return fmean([ns for ns in side.lengths_ns if ns <= most_ns])


def _timed(side: DiffSide, runs: Runs) -> DiffSide:
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
