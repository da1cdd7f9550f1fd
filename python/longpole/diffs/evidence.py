"""The evidence that two sides are one program, and what else may have changed its step."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from longpole.diffs.account import path_changes
from longpole.diffs.counts import counts_of
from longpole.diffs.machine import Machine, Threads, machine_of, mean_on_one_machine_ns
from longpole.diffs.predictions import predictions
from longpole.diffs.remains import is_gone
from longpole.diffs.rewrites import (
    contents_of,
    contents_of_trace,
    same_kernels,
    signed_alone,
)
from longpole.diffs.runs import has_shapes
from longpole.diffs.samples import FEWEST
from longpole.diffs.setups import differing, setups_of
from longpole.diffs.values import Counts
from longpole.remedies.catalogue import remedies, remedy_of

if TYPE_CHECKING:
    from longpole.diffs.changes import Work
    from longpole.diffs.rewrites import Contents
    from longpole.diffs.runs import Runs
    from longpole.diffs.sides import Side
    from longpole.diffs.values import LateRank, PathChange, Prediction
    from longpole.trace.trace import Trace


@dataclass(frozen=True)
class Evidence:
    """The evidence that both sides are one program, and the remedies that were applied to it."""

    is_one_program: bool
    predictions: tuple[Prediction, ...]
    counts: tuple[Counts, ...]
    path: tuple[PathChange, ...] = ()
    machine: Machine | None = None
    threads: Threads | None = None
    """How unchanged operators differ, if threads changed in opposite ways."""
    are_recorded_alike: bool = True
    """Whether both sides were recorded by one version of a profiler with the same options."""
    is_one_recording: bool = False
    left_out: tuple[int, ...] = ()
    """Ranks that are left out, because a trace is damaged."""
    signs: tuple[str, ...] = ()
    """Remedies of which the new side has the kernels, if these alone show one program."""
    undone: tuple[str, ...] = ()
    """Remedies that only the base has applied, if these alone show that both are one program."""
    late_rank: LateRank | None = None
    is_stated: bool = False
    """Whether the caller says that both sides are one program, though little work corresponds."""


def evidence_of(
    pair: tuple[Side, Side], work: Work, sides: list[Runs], *, is_same_program: bool
) -> Evidence:
    """Compare the launches, the kernels, and the signatures of applied remedies."""
    if any(it.is_grave for side in sides for it in side.damage):
        return Evidence(is_one_program=True, predictions=(), counts=())
    base, new = pair
    compared = _machine(base, new, sides)
    machine = compared if isinstance(compared, Machine) else None
    counts = counts_of(base, new)
    contents = (contents_of(base), contents_of(new))
    is_alike = work.is_related or same_kernels(*contents)
    if not is_alike and not all(each.kernels for each in contents):
        # The host runs so far ahead that a repetition has no launch of its own.
        is_alike = same_kernels(*(contents_of_trace(side) for side in pair))
    measured = None
    if base.mean_ns and not differing(setups_of(*(side.traces for side in sides))):
        lengths_ns = timed_or_mean_ns((base, new), sides)
        measured = 1 - lengths_ns[1] * _share_on_one_machine(new, machine) / lengths_ns[0]
    is_rewritten = not (is_alike or is_same_program)
    asked: dict[str, Any] = {"is_rewritten": is_rewritten, "left_out": _unseen(sides)}
    found = predictions(
        base.verdict,
        new.verdict,
        measured,
        counts,
        contents=contents,
        is_gone=lambda remedy: is_rewritten or is_gone(remedy, pair, work),
        **asked,
    )
    undone: tuple[Prediction, ...] = ()
    if is_rewritten and not found and measured is not None and measured < 1:
        back = 1 - 1 / (1 - measured)
        turned = [Counts(row.what, row.new, row.base) for row in counts]
        asked["contents"] = contents[::-1]
        undone = predictions(new.verdict, base.verdict, back, turned, **asked)
    signs: list[tuple[str, ...]] = [(), ()]
    if is_rewritten and not found and not undone:
        signs = [
            _signs(one, sides[number]) for number, one in enumerate((contents, contents[::-1]))
        ]
    return Evidence(
        is_one_program=not is_rewritten or bool(found or undone or any(signs)),
        undone=(*(row.remedy for row in undone), *signs[1]),
        signs=signs[0],
        is_stated=is_same_program and not is_alike,
        predictions=found,
        counts=counts,
        path=path_changes(*pair),
        machine=machine,
        threads=compared if isinstance(compared, Threads) else None,
        are_recorded_alike=_are_recorded_alike(sides),
    )


def _signs(contents: tuple[Contents, Contents], side: Runs) -> tuple[str, ...]:
    """Return remedies by their signature alone, if a side has no shapes for a prediction."""
    return () if any(map(has_shapes, side.traces)) else signed_alone(*contents)


def _unseen(sides: list[Runs]) -> frozenset[str] | None:
    """Return the remedies whose evidence one side may lack for another reason; None for all.

    A side that was recorded with other options does not show the evidence. Of several ranks, waits
    for others end when these are faster.
    """
    if len(_options(sides)) > 1:
        return None
    if all(len(run) == 1 for side in sides for run in side.runs):
        return frozenset()
    return frozenset(one.id for one in remedies() if one.depends_on_ranks)


def _share_on_one_machine(side: Side, machine: Machine | None) -> float:
    """Return the mean step at the speed of the base's machine, divided by the mean step."""
    if machine is None or not machine.differs or not side.mean_ns:
        return 1.0
    return mean_on_one_machine_ns(side, machine) / side.mean_ns


def timed_or_mean_ns(pair: tuple[Side, Side], sides: list[Runs]) -> tuple[float, float]:
    """Return the mean step of each side: as timed without the profiler if both were."""
    if are_timed(sides):
        return float(median(sides[0].timed_ns)), float(median(sides[1].timed_ns))
    return pair[0].mean_ns, pair[1].mean_ns


def _machine(base: Side, new: Side, sides: list[Runs]) -> Machine | Threads | None:
    """Compare the speed of unchanged operators, if only the machine can have changed it.

    If only one side was timed without the profiler, or a time is given, it does not depend on how
    fast the recording ran. Threads that compete for the interpreter lock or for cores make all
    operators slower.
    """
    named = [row.remedy for side in (base, new) for row in side.verdict.remedies if row.named]
    is_partly_timed = (base.is_timed or new.is_timed) and not are_timed(sides)
    if is_partly_timed or any(remedy_of(name).slows_all_operators for name in named):
        return None
    each = [
        [rank for run in side.runs for rank in run if rank.trace.rank == described.trace.rank]
        for side, described in zip(sides, (base, new), strict=True)
    ]
    return machine_of(each[0], each[1])


def _are_recorded_alike(sides: list[Runs]) -> bool:
    """Whether one version of a profiler recorded both sides on one machine, with the same options.

    Python functions and shapes are the options that cost most.
    """
    setups = setups_of(*(side.traces for side in sides))
    return len(_options(sides)) == 1 and not any(setup.differs for setup in setups)


def _options(sides: list[Runs]) -> set[tuple[bool, bool]]:
    """Return whether Python functions and shapes are recorded, of all traces."""
    traces = [trace for side in sides for trace in side.traces]
    return {(_has_python(trace), has_shapes(trace)) for trace in traces}


def _has_python(trace: Trace) -> bool:
    """Whether Python functions are recorded."""
    return bool((trace.events["kind"] == "python").any())


def are_timed(sides: list[Runs]) -> bool:
    """Whether steps of both sides were timed without the profiler, often enough to compare them."""
    return all(len(side.timed_ns) >= FEWEST for side in sides)


def are_single(sides: list[Runs]) -> bool:
    """Whether each side is one run."""
    return all(len(side.runs) == 1 for side in sides)
