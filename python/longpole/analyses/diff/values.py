"""What a comparison finds, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from longpole.analyses.diff.machine import Machine
from longpole.analyses.diff.matching import Relation
from longpole.analyses.diff.setups import Setup
from longpole.damage import Damage
from longpole.data import Data, computed
from longpole.verdict import Verdict

__all__ = [
    "Change",
    "Counts",
    "DiffSide",
    "Findings",
    "Outcome",
    "PathChange",
    "Prediction",
    "joined",
]

Outcome = Literal["regression", "improvement", "neutral", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Counts(Data):
    """How many of something there are in a step, on average."""

    what: str
    """`launches`, `gpu_activities`, `blocking_calls` or `operators`."""
    base: float
    new: float


@dataclass(frozen=True, slots=True)
class DiffSide(Data):
    """One side of a comparison."""

    n_runs: int
    ranks: tuple[int | None, ...]
    """Of the traces of a run."""
    rank: int | None
    """Of the trace that the details are about."""
    unit: str
    """`step`, or what is compared where the trace marks no steps."""
    n_steps: int
    """Of the run that the details are about."""
    steps: tuple[int, ...]
    mean_ns: float
    """The mean step without the profiler, where the trace tells; else as recorded."""
    recorded_mean_ns: float
    """The mean step as recorded."""
    median_ns: float
    step_noise: float | None
    """The spread of the steps of a run, robust, as a share; None for one step."""
    run_noise: float | None
    """The spread of the runs, robust, as a share; None for one run."""
    verdict: Verdict
    damage: tuple[Damage, ...]
    """What reading lost of the traces of this side that are damaged."""
    peak_memory_bytes: int | None
    """The most that was allocated on a device, where the trace tells."""


@dataclass(frozen=True, slots=True)
class Change(Data):
    """Work that is the same on both sides, or took each other's place; times are a step's."""

    kind: str
    """`kernel`, `copy`, `communication`, `operator`, `runtime`, `host_gap` or `data_loading`."""
    relation: Relation
    base_names: tuple[str | None, ...]
    new_names: tuple[str | None, ...]
    base_ns: float
    new_ns: float
    base_count: float
    new_count: float
    base_path_ns: float
    """The part on the critical path."""
    new_path_ns: float
    t: float | None
    """The difference in standard errors of the steps; None where there is one step a side."""
    stands_out: bool
    """Whether the noise between steps does not explain it."""
    effect_ns: float | None
    """By how much the step is longer through this change alone, recomputed by the graph; None
    where it was not computed."""
    base_shapes: tuple[str, ...]
    new_shapes: tuple[str, ...]
    base_event: int | None
    """The longest event, as a row of `Trace.events`."""
    new_event: int | None

    @computed
    def change_ns(self) -> float:
        """By how much longer it takes in a step."""
        return self.new_ns - self.base_ns

    @property
    def change(self) -> float | None:
        """Give the same as a share of the base; None where it is new."""
        return self.change_ns / self.base_ns if self.base_ns else None

    @property
    def name(self) -> str:
        """Give its name, or what became of it."""
        base, new = joined(self.base_names), joined(self.new_names)
        return base if base == new or not new else new if not base else f"{base} -> {new}"


@dataclass(frozen=True, slots=True)
class PathChange(Data):
    """The time of one kind on the critical path, in a step of either side."""

    kind: str
    base_ns: float
    new_ns: float
    base_alone_ns: float
    """On the path of the step of median length alone, as `longpole path` shows it."""
    new_alone_ns: float

    @computed
    def change_ns(self) -> float:
        """By how much longer it is."""
        return self.new_ns - self.base_ns


@dataclass(frozen=True, slots=True)
class Prediction(Data):
    """A remedy of the verdict on the base that the new side evidently applied."""

    remedy: str
    base_gain_ns: int
    """What the remedy surely saves of a mean step of the base."""
    new_gain_ns: int
    """What it would still save of a step of the new side."""
    gain_low: float
    """What the verdict predicted of so much of the remedy as was applied, as shares of the step."""
    gain_high: float
    measured: float
    """How much shorter the mean step became, as a share, with whatever else changed."""
    is_alone: bool
    """Whether no other remedy was applied; else the measured gain is that of all together."""


@dataclass(frozen=True, slots=True)
class Findings(Data):
    """The changes between two sides, and whether they matter."""

    verdict: Outcome
    sentence: str
    reasons: tuple[str, ...]
    """Why this verdict, and what it cannot know."""
    gate: float
    """The smallest change that matters."""
    change: float | None
    """Of the mean step, as a share of the base."""
    interval: tuple[float, float] | None
    """Between which two shares the change lies, but for a chance of 5 %."""
    is_related: bool
    """Whether the two sides seem to be the same program at all."""
    similarity: float
    """The share of launches or of operators that have a counterpart, the greater of the two."""
    n_differences: int
    """How many groups of work differ in anything, their names or numbers or times."""
    base: DiffSide
    new: DiffSide
    setups: tuple[Setup, ...]
    """What the files record of devices, world size and software."""
    changes: tuple[Change, ...]
    """All work, what matters most first."""
    path: tuple[PathChange, ...]
    """The changes of a step's critical path by kind; they sum to the change of the step."""
    counts: tuple[Counts, ...]
    predictions: tuple[Prediction, ...]
    """What the verdict on the base predicted of the remedies that the new side applied."""
    machine: Machine | None
    """How fast unchanged operators ran; null where there are too few, or several runs a side."""
    change_on_one_machine: float | None
    """The change of the mean step without what the machine did, where the machine changed."""
    rests_on_host: bool
    """Whether one run a side does the same work equally often, and only host times differ."""

    @property
    def is_lost(self) -> bool:
        """Whether the damage of a trace may have taken what the comparison needs."""
        return any(it.is_grave for side in (self.base, self.new) for it in side.damage)


def joined(names: tuple[str | None, ...]) -> str:
    """Name some work by all its names, each once.

    Examples
    --------
    >>> joined(("add", "mul", "add"))
    'add + mul'
    """
    return " + ".join(dict.fromkeys(name or "(no name)" for name in names))
