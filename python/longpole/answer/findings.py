"""The results of a verdict, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field

from longpole.engine.critical_path.changes import Change
from longpole.engine.windows import Unit  # noqa: TC001 - the schema of the answer needs it at run time
from longpole.remedies.catalogue import RemedyId
from longpole.remedies.gains import WORTH_SAYING, Gain, Saving
from longpole.remedies.limits import Limit, NotShown, sides_of, status_of
from longpole.remedies.model import Effort, Form
from longpole.remedies.sides import Cause, Side, Status
from longpole.words.data import HIDDEN, Data, computed


@dataclass(frozen=True, slots=True)
class Remedy(Data):
    """A change of the program, and its gain.

    Gains of several remedies overlap and must not be added.
    """

    remedy: RemedyId
    """Identifier of the remedy."""
    sides: tuple[Side, ...]
    """What its changes shorten."""
    effort: Effort
    name: str | None
    """The place, function or kernel it applies to; None for all."""
    named: bool
    """Whether it is a line of the plan."""
    advice: str
    """What to change."""
    evidence: str
    """What the trace shows; empty if the advice contains it."""
    gain: Gain
    """What it saves of the mean step."""
    changes: tuple[Change, ...]
    """Changes certain to be possible: `CriticalPath.what_if` with these, over the steps of
    `Verdict.remedy_steps`, returns the value of `gain`."""
    hopeful_changes: tuple[Change, ...]
    """Changes that may be possible; the same if there are no others."""
    events: tuple[int, ...]
    """Rows of `Trace.events` that show it best."""
    saves: tuple[float, float, str] = field(default=(0.0, 0.0, ""), metadata=HIDDEN)
    """Smallest and largest share that it saves alone, and their wording."""
    is_listed: bool = field(default=False, metadata=HIDDEN)
    """Whether it is a line of the plan, or would surely save enough after all lines."""
    forms: tuple[Form, ...] = field(default=(), repr=False, metadata=HIDDEN)

    @property
    def is_worth_saying(self) -> bool:
        """Whether it may save enough to be worth saying."""
        return self.gain.high >= WORTH_SAYING

    @property
    def surely_saves(self) -> bool:
        """Whether it surely saves enough to be worth saying."""
        return self.gain.low >= WORTH_SAYING


@dataclass(frozen=True, slots=True)
class PlanLine(Data):
    """A remedy in its place in the plan."""

    remedy: RemedyId
    """Identifier of the remedy."""
    name: str | None
    """The place, function or kernel it applies to; None for all."""
    sides: tuple[Side, ...]
    """What the plan shortens up to this line."""
    effort: Effort
    is_certain: bool
    """Whether the change is known to be possible."""
    advice: str
    """What to change."""
    evidence: str
    """What the trace shows after the lines before it; empty if the advice contains it."""
    then: Saving | None
    """What it saves after the lines before it; None if that is not computed."""
    gain: Gain | None
    """What it saves together with the lines before it."""
    instead_of: tuple[RemedyId, ...]
    """Remedies that change what this line changes: they are alternatives, not additions."""
    parts: tuple[RemedyId, ...]
    """Remedies that the same change contains: it removes the code of one place."""
    changes: tuple[Change, ...]
    """Its certain changes, without what earlier lines change."""
    hopeful_changes: tuple[Change, ...]
    """Changes that may be possible; the same if there are no others."""
    events: tuple[int, ...]
    """Rows of `Trace.events` that show it best."""
    told: str = field(default="", metadata=HIDDEN)
    """The line in words."""
    saves: tuple[float, float, str] = field(default=(0.0, 0.0, ""), metadata=HIDDEN)
    """Smallest and largest share that it saves then, and their wording."""


@dataclass(frozen=True, slots=True)
class Plan(Data):
    """Remedies that work together, in their order."""

    lines: tuple[PlanLine, ...] = ()
    """At most four lines."""
    gain: Gain | None = None
    """What they save together of the mean step; None without lines."""
    length_ns: int = 0
    """Length of the step before, as in the sentence of the verdict."""
    then_ns: tuple[int, int] | None = None
    """Least and most length of the step after all lines."""
    sentence: str = ""
    """What several lines save together; empty for fewer."""
    obstacle: str = ""
    """Calls without a remedy that prevent one more line; empty if none do."""


@dataclass(frozen=True, slots=True)
class Span:
    """The representative window: the one of median length."""

    unit: Unit
    number: int | None
    length_ns: int
    mean_ns: int
    """Mean length of all `n` windows, to which gains refer."""
    min_ns: int
    max_ns: int
    n: int
    outliers: tuple[int, ...]
    """Numbers of the windows longer than 1.5 times the median."""
    caught_up_ns: int | None
    """Time that the host takes for a window, if the device catches up with earlier work in shorter
    ones; null otherwise."""


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """Warnings about a verdict, as fractions."""

    unknown: float
    """Fraction of the path that the trace does not explain."""
    floor: float
    """Fraction of the time that remains if all recorded work takes no time."""
    unlinked: float
    """Fraction of the GPU activities, by number or by time, whose launch is unknown."""
    inferred: float
    """Fraction of the path that is inferred, not recorded."""


@dataclass(frozen=True, slots=True)
class Gap(Data):
    """Unexplained time that the answer leaves out."""

    duration_ns: int
    event: int
    """The event that begins or returns late: a row of `Trace.events`."""
    busy_ns: int
    """How long any device was busy during the gap."""


@dataclass(frozen=True, slots=True)
class StartUp(Data):
    """One-time work in the windows, such as loading kernels, which no saving includes."""

    duration_ns: int
    share: float
    """Its share of all windows."""
    is_answer: bool
    """Whether it takes most of the time, so that the only line of the plan is to record a later
    step."""
    sentence: str
    """How long it takes and what it is; empty if the line of the plan says so."""
    events: tuple[int, ...]
    """Rows of `Trace.events` that show it best."""


@dataclass(frozen=True, slots=True)
class Findings(Data):
    """What limits a program, and what to do about it."""

    limit: Limit
    """What limits the program."""
    remedies: tuple[Remedy, ...]
    """Remedies, sorted by certain gain."""
    plan: Plan
    """What to change, one after another, and what that saves."""
    gains: dict[Side, Gain]
    """How much shorter it would be without each side; empty if the trace does not show it."""
    gaps: tuple[Gap, ...]
    """Unexplained time left out of lengths and gains, longest first."""
    start_up: StartUp | None
    """One-time work in the windows; null if it takes little of them."""
    steps: tuple[int, ...]
    """The steps that the gains of the sides cover together."""
    remedy_steps: tuple[int, ...]
    """The steps in which remedies are looked for, and which their gains cover: all of these steps,
    or some that represent them."""
    window: Span
    step_range_ns: tuple[int, int] | None
    """Least and most time that the window shown takes without the profiler; null if unknown, or for
    another window than the median step."""
    uncertainty: Uncertainty
    reason: str
    """Why this window was chosen; also why there is no verdict, if there is none."""
    record: str | None
    """What to record so that the trace contains more."""
    sentence: str
    """What limits the program, and by how much."""
    actions: tuple[str, ...]
    """What to do: the lines of the plan, what takes most time, and what to record."""
    caveat: str | None
    """The strongest caveat, or None."""
    is_searched: bool = field(default=False, metadata=HIDDEN)
    """Whether it reports remedies, if any save enough."""
    lacks_operators: bool = field(default=False, metadata=HIDDEN)
    """Whether remedies lack a part of the recording that most of them need."""
    limited_by: tuple[str, str] | None = field(default=None, metadata=HIDDEN)
    """What limits the program and by how much, in a few words; None if unknown."""
    recorded: str | None = field(default=None, metadata=HIDDEN)
    """How to get the times without the profiler, if those recorded are much longer."""

    @computed
    def status(self) -> Status:
        """Whether `limit` is an answer."""
        return status_of(self.limit)

    @computed
    def sides(self) -> tuple[Side, ...]:
        """The sides of `limit`, largest gain first; empty if none limits the program alone."""
        return sides_of(self.limit)

    @computed
    def cause(self) -> Cause | None:
        """Why the trace does not show what limits the program; None if it does."""
        return self.limit.reason if isinstance(self.limit, NotShown) else None
