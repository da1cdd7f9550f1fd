"""The evidence that two sides are one program, and what else may have changed its step."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from longpole.diffs.account import path_changes
from longpole.diffs.counts import counts_of
from longpole.diffs.judgement import FEWEST
from longpole.diffs.machine import Machine, Threads, machine_of, means_on_one_machine_ns
from longpole.diffs.predictions import predictions
from longpole.diffs.rewrites import contents_of, same_kernels
from longpole.diffs.setups import differing, setups_of

if TYPE_CHECKING:
    from longpole.diffs.changes import Work
    from longpole.diffs.runs import Runs
    from longpole.diffs.sides import Side
    from longpole.diffs.values import Counts, PathChange, Prediction

_DEVICE_KINDS: Final = ("kernel", "copy", "communication")

# The causes that these remedies address also slow down operators that did not change.
_SLOW_ALL_OPERATORS: Final = frozenset({"interpreter_lock", "host_threads"})


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


def evidence_of(
    pair: tuple[Side, Side], work: Work, sides: list[Runs], *, is_same_program: bool
) -> Evidence:
    """Compare the launches, the kernels, and the signatures of applied remedies."""
    if any(it.is_grave for side in sides for it in side.damage):
        return Evidence(is_one_program=True, predictions=(), counts=())
    base, new = pair
    compared = _machine(base, new, sides) if are_single(sides) else None
    machine = compared if isinstance(compared, Machine) else None
    counts = counts_of(base, new)
    contents = (contents_of(base), contents_of(new))
    is_alike = work.is_related or same_kernels(*contents)
    measured = None
    if base.mean_ns and not differing(setups_of(*(side.traces for side in sides))):
        lengths_ns = timed_or_mean_ns((base, new), sides)
        measured = 1 - lengths_ns[1] * _share_on_one_machine(new, machine) / lengths_ns[0]
    found = predictions(
        base.verdict,
        new.verdict,
        measured,
        counts,
        contents=contents,
        is_rewritten=not (is_alike or is_same_program),
    )
    return Evidence(
        is_one_program=is_alike or is_same_program or bool(found),
        is_stated=is_same_program and not is_alike,
        predictions=found,
        counts=counts,
        path=path_changes(*pair),
        machine=machine,
        threads=compared if isinstance(compared, Threads) else None,
        change_range=_cost_changes(sides, work),
    )


def _share_on_one_machine(side: Side, machine: Machine | None) -> float:
    """Return the mean step at the speed of the base's machine, divided by the mean step."""
    if machine is None or not machine.differs or not side.mean_ns:
        return 1.0
    return means_on_one_machine_ns(side, machine)[0] / side.mean_ns


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
    named = {row.remedy for side in (base, new) for row in side.verdict.remedies if row.named}
    is_partly_timed = (base.is_timed or new.is_timed) and not are_timed(sides)
    if is_partly_timed or named & _SLOW_ALL_OPERATORS:
        return None
    return machine_of(base, new)


def _cost_changes(sides: list[Runs], work: Work) -> tuple[float, float] | None:
    """Return the range of the change that the estimated cost of recording leaves, if any.

    Sides that were recorded alike are compared at the same cost: the least, the most, and the
    estimated one. If they do the same work, only the host can differ, and the cost of one side may
    be another one.
    """
    if are_timed(sides):
        return None
    if not (are_single(sides) and any(side.range_ns for side in sides)):
        return None
    base, new = (side.range_ns or (side.means_ns[0],) * 2 for side in sides)
    if not _are_recorded_alike(sides) or work.rests_on_host:
        base = base[1], base[0]
    pairs = [*zip(base, new, strict=True), tuple(side.means_ns[0] for side in sides)]
    changes = [after / max(before, 1.0) - 1 for before, after in pairs]
    return min(changes), max(changes)


def _are_recorded_alike(sides: list[Runs]) -> bool:
    """Whether one version of a profiler recorded both sides on one machine, with the same options.

    Recording Python functions is the option that costs most.
    """
    traces = [trace for side in sides for trace in side.traces]
    has_python = {(trace.events["kind"] == "python").any() for trace in traces}
    setups = setups_of(*(side.traces for side in sides))
    return len(has_python) == 1 and not any(setup.differs for setup in setups)


def are_timed(sides: list[Runs]) -> bool:
    """Whether steps of both sides were timed without the profiler, often enough to compare them."""
    return all(len(side.timed_ns) >= FEWEST for side in sides)


def are_single(sides: list[Runs]) -> bool:
    """Whether each side is one run."""
    return all(len(side.runs) == 1 for side in sides)
