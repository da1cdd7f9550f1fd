"""The results of a comparison as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal

from longpole.answer import Verdict
from longpole.answer.answer import Answer
from longpole.diffs.machine import Machine
from longpole.diffs.matching import Relation
from longpole.diffs.setups import Setup
from longpole.files.damage import Damage
from longpole.words.data import HIDDEN, Data, computed

OF_ORDER: Final = frozenset({"exposed", "handover", "wait"})
"""Kinds of changes that are not work: of its order, and of the time between threads."""

Outcome = Literal["regression", "improvement", "neutral", "inconclusive"]
OpenBy = Literal["cost", "machine", "spread", "gate", "noise"]


@dataclass(frozen=True, slots=True)
class Counts(Data):
    """Mean number per step of one kind of event."""

    what: str
    """`launches`, `gpu_activities`, `blocking_calls` or `operators`."""
    base: float
    new: float


@dataclass(frozen=True, slots=True)
class DiffSide(Data):
    """One side of a comparison."""

    n_runs: int
    ranks: tuple[int | None, ...]
    """Ranks of the traces of a run."""
    rank: int | None
    """Rank of the trace from which the details are taken."""
    unit: str
    """`step`, or the unit that is compared if the trace marks no steps."""
    n_steps: int
    """Number of steps of the run from which the details are taken."""
    steps: tuple[int, ...]
    mean_ns: float
    """The mean step without the profiler's overhead if the trace shows it; else as recorded. The
    median of `timed_ns` if there are any."""
    recorded_mean_ns: float
    """The mean step as recorded."""
    range_ns: tuple[float, float] | None
    """The least and the most that a mean step takes without the profiler, if that is not certain
    and matters, or of `timed_ns`; None for several runs, which show how much estimates differ, and
    for steps of one run."""
    range_source: Literal["estimated", "measured"] | None
    """Whether that is estimated, or the range of steps that were timed without the profiler."""
    timed_ns: tuple[int, ...]
    """Mean steps that were timed without the profiler when the trace was recorded; empty unless
    both sides have enough to be compared by them."""
    given_ns: int | None
    """The mean step without the profiler that was given; recorded steps are scaled to it."""
    median_ns: float
    outlier_steps: tuple[int, ...]
    """Steps that are longer than 1.5 times the median; empty for several runs."""
    mean_of_others_ns: float
    """The mean of the other steps."""
    step_noise: float | None
    """Robust spread of the steps of a run, or of `timed_ns`, as a fraction; None for one step."""
    run_noise: float | None
    """Robust spread of the runs, as a fraction; None for one run."""
    verdict: Verdict
    damage: tuple[Damage, ...]
    """Damage of the traces of this side."""
    notes: tuple[str, ...]
    """What is wrong with its steps that were timed without the profiler."""
    peak_memory_bytes: int | None
    """Peak of allocated memory on a device, if recorded."""
    answer: Answer | None = field(default=None, repr=False, compare=False, metadata=HIDDEN)
    """The answer about the trace from which the details are taken."""

    @property
    def is_in_range(self) -> bool:
        """Whether the mean step lies in its range, if it has one."""
        return self.range_ns is None or self.range_ns[0] <= self.mean_ns <= self.range_ns[1]


@dataclass(frozen=True, slots=True)
class Change(Data):
    """Work that is the same on both sides, or replaced each other.

    Times are per step, without the profiler's overhead if the trace shows it.
    """

    kind: str
    """`kernel`, `copy`, `communication`, `operator`, `runtime`, `host_gap` or `data_loading`. Of
    order: `exposed` (communication or copies without a concurrent kernel), `wait` (calls that wait
    for the GPU) and `handover` (from the last work of a thread to the first of the next)."""
    relation: Relation
    base_names: tuple[str | None, ...]
    new_names: tuple[str | None, ...]
    base_ns: float
    new_ns: float
    base_count: float
    new_count: float
    base_path_ns: float
    """Part on the critical path."""
    new_path_ns: float
    t: float | None
    """Difference in standard errors of the steps; None with one step per side."""
    stands_out: bool
    """Whether the change exceeds the noise between steps."""
    effect_ns: float | None
    """How much longer the step is through this change alone, by the graph; None if not computed."""
    base_shapes: tuple[str, ...]
    new_shapes: tuple[str, ...]
    base_event: int | None
    """The longest event, a row of `Trace.events`."""
    new_event: int | None

    @computed
    def change_ns(self) -> float:
        """Difference of its time per step."""
        return self.new_ns - self.base_ns

    @property
    def change(self) -> float | None:
        """Return the difference as a fraction of the base; None for new work."""
        return self.change_ns / self.base_ns if self.base_ns else None

    @property
    def name(self) -> str:
        """Return its name, or how it was renamed."""
        base, new = joined(self.base_names), joined(self.new_names)
        return base if base == new or not new else new if not base else f"{base} -> {new}"


@dataclass(frozen=True, slots=True)
class PathChange(Data):
    """Time of one kind on the critical path, per step of each side."""

    kind: str
    base_ns: float
    new_ns: float
    base_alone_ns: float
    """Time on the path of only the step of median length, as in `longpole path`."""
    new_alone_ns: float
    base_work_ns: float | None
    """All time of this kind in a step, on the path or not; None for waits and latencies."""
    new_work_ns: float | None

    @computed
    def change_ns(self) -> float:
        """Difference in time."""
        return self.new_ns - self.base_ns


@dataclass(frozen=True, slots=True)
class LateRank(Data):
    """A rank that the others wait for, on one side or for longer than on the other."""

    rank: int
    cause: str
    """What makes it late, as in `longpole ranks`."""
    name: str | None
    """The function or kernel that accounts for most of it, if one stands out."""
    base_gain_ns: float
    """How much shorter a step of the base would be if the rank were as the others."""
    new_gain_ns: float
    effect_ns: float = 0.0
    """How much longer the step is because of it, at most the change of the step."""

    @property
    def change_ns(self) -> float:
        """Return the difference of both gains."""
        return self.new_gain_ns - self.base_gain_ns

    def at_most(self, change_ns: float) -> LateRank:
        """Return it with its effect: the difference of both gains, at most a change."""
        return replace(self, effect_ns=min(self.change_ns, change_ns, key=abs))


@dataclass(frozen=True, slots=True)
class Prediction(Data):
    """A remedy of the base's verdict that the new side evidently applied."""

    remedy: str
    base_gain_ns: int
    """Minimum gain of the remedy in a mean step of the base."""
    new_gain_ns: int
    """Minimum gain of the remedy that remains in a step of the new side."""
    gain_low: float
    """Predicted gain of the applied part of the remedy, as fractions of the step."""
    gain_high: float
    measured: float
    """Measured reduction of the mean step, as a fraction, including all other changes; at the speed
    of the base if the machine changed."""
    is_alone: bool
    """Whether no other remedy was applied; otherwise the measured gain is that of all together."""
    came_true: bool = True
    """Whether the interval of the change and that of the prediction, of all remedies together,
    overlap. If not, something else happened."""


@dataclass(frozen=True, slots=True)
class Findings(Data):
    """The changes between two sides, and whether they matter."""

    verdict: Outcome
    sentence: str
    reasons: tuple[str, ...]
    """Reasons for the verdict, and its limits."""
    gate: float
    """The smallest change that matters."""
    change: float | None
    """Change of the mean step without the profiler, as a fraction of the base."""
    recorded_change: float | None
    """Change of the mean step as recorded."""
    interval: tuple[float, float] | None
    """Interval that contains the change, as fractions: the 95 % intervals at every cost of
    recording, from none to the most, the change at equal speed of the machines, and that without
    Python functions that only one side records."""
    is_related: bool
    """Whether enough launches or operators have a counterpart to compare them."""
    is_one_program: bool
    """Whether both sides are evidently one program: they are related or run the same kernels, one
    side has the signature of a remedy that the other lacks, or the caller said so."""
    is_stated: bool
    """Whether the caller said that both sides are one program, though little work corresponds."""
    is_one_recording: bool
    """Whether a step is compared with others of its run."""
    left_out_ranks: tuple[int, ...]
    """Ranks that are left out on both sides, because a trace of theirs is severely damaged."""
    similarity: float | None
    """Share of launches or of operators with a counterpart, whichever is greater; null if there are
    neither on both sides."""
    n_differences: int
    """Number of groups of work that differ in names, numbers or times."""
    base: DiffSide
    new: DiffSide
    setups: tuple[Setup, ...]
    """Recorded devices, world size and software."""
    changes: tuple[Change, ...]
    """All work, most important change first."""
    path: tuple[PathChange, ...]
    """Changes of a step's critical path by kind, without the profiler's overhead if the trace shows
    it; they sum to the change of these steps."""
    counts: tuple[Counts, ...]
    undone: tuple[str, ...]
    """Remedies that the base has applied and the new side has not, if these alone show that both
    are one program."""
    signs: tuple[str, ...]
    """Remedies of which the new side has the kernels, if these alone show that both are one
    program: the base does not record what a prediction needs."""
    predictions: tuple[Prediction, ...]
    """Predictions of the base's verdict for the remedies that the new side applied."""
    late_rank: LateRank | None
    """The rank whose lateness changed the step most, by the joint graphs of several ranks."""
    machine: Machine | None
    """Speed of unchanged operators; null if there are too few."""
    open_by: OpenBy | None
    """What leaves the verdict open: the cost of recording (`cost`), the speed of the `machine`, the
    `spread` of the steps, the `gate`, which lies in the interval, or `noise`; null if nothing of
    these does."""

    @property
    def is_lost(self) -> bool:
        """Whether the damage of a trace may affect the comparison."""
        return any(it.is_grave for side in (self.base, self.new) for it in side.damage)

    def is_part(self, change: Change) -> bool:
        """Whether added or removed work is only part of its name, which both sides have."""
        if change.relation not in {"added", "removed"}:
            return False
        name = (*change.base_names, *change.new_names)[0]
        return any(
            it.kind == change.kind and it.base_names[0] == name and it.base_count and it.new_count
            for it in self.changes
            if it.relation in {"same", "reshaped"}
        )

    @property
    def is_timed(self) -> bool:
        """Whether the steps of both sides were timed without the profiler, or their time given."""
        return all(side.timed_ns or side.given_ns is not None for side in (self.base, self.new))

    @property
    def range_sources(self) -> set[str]:
        """Return where the ranges of both sides come from."""
        return {side.range_source for side in (self.base, self.new) if side.range_source}

    @property
    def machine_matters(self) -> bool:
        """Whether unchanged operators ran clearly faster or slower on the new side."""
        return self.machine is not None and self.machine.differs


def joined(names: tuple[str | None, ...]) -> str:
    """Return the names of some work, each once.

    Examples
    --------
    >>> joined(("add", "mul", "add"))
    'add + mul'
    """
    return " + ".join(dict.fromkeys(name or "(no name)" for name in names))
