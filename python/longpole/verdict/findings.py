"""What a verdict finds, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from longpole.critical_path.changes import Change
from longpole.data import Data, Hidden
from longpole.remedies.catalogue import RemedyId
from longpole.remedies.model import Effort, Form
from longpole.remedies.parts import Cause, Fact, Side, Status, Unit

__all__ = ["Bounds", "Doubt", "Findings", "Gap", "Remedy", "Span"]


@dataclass(frozen=True, slots=True)
class Remedy(Data):
    """Something to change in the program, and what that saves.

    Gains of several remedies overlap and are never added.
    """

    remedy: RemedyId
    """Which one of the catalogue."""
    side: Side
    effort: Effort
    name: str | None
    """The place, function or kernel it is about; None for all."""
    named: bool
    """Whether the verdict names it."""
    advice: str
    """What to change."""
    evidence: str
    """What the trace shows; empty where the advice says it."""
    gain_ns: int
    """Of the mean step, by what surely goes, rounded down. Below 0 it would cost."""
    gain: float
    """The same as a share of the time."""
    gain_low: float
    """The least gain: by what surely goes, whatever is missing from the trace."""
    gain_high: float
    """The greatest gain: by what may go."""
    gain_then: float
    """The gain after the remedies listed before it."""
    low_by: Fact
    """What bounds the least gain."""
    high_by: Fact
    """What bounds the greatest."""
    changes: tuple[Change, ...]
    """What surely goes: `CriticalPath.what_if` gives `gain`."""
    hopeful_changes: tuple[Change, ...]
    """What may go; the same where nothing else may."""
    events: tuple[int, ...]
    """Rows of `Trace.events` that show it best."""
    told: Hidden[tuple[float, float, str] | None] = None
    """What the verdict says that it saves: the least, the most and the words; None where the
    verdict does not list it."""
    forms: Hidden[tuple[Form, ...]] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Span:
    """The window that stands for the rest: the one of median length."""

    unit: Unit
    number: int | None
    length_ns: int
    min_ns: int
    max_ns: int
    n: int
    outliers: tuple[int, ...]
    """The numbers of those longer than 1.5 times the median."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """What speaks against a verdict, as shares."""

    unknown: float
    """Of the path: the trace does not say what it was."""
    floor: float
    """Of the time: it remains if all recorded work takes no time."""
    unlinked: float
    """Of the device work, by number or by time: its launch is not known."""
    inferred: float
    """Of the path: inferred, not recorded."""


@dataclass(frozen=True, slots=True)
class Bounds(Data):
    """What a side gains at least and at most, whatever is missing from the trace."""

    low: float
    high: float
    low_by: Fact
    high_by: Fact


@dataclass(frozen=True, slots=True)
class Gap(Data):
    """A piece of unexplained time that the answer leaves out."""

    duration_ns: int
    event: int
    """What begins or returns late: a row of `Trace.events`."""
    busy_ns: int
    """How long a device was busy meanwhile."""


@dataclass(frozen=True, slots=True)
class Findings(Data):
    """What holds a program up, and what can be done about it."""

    status: Status
    sides: tuple[Side, ...]
    """What holds it up, the greatest first."""
    remedies: tuple[Remedy, ...]
    """What can be done, by what it surely saves."""
    gains: dict[Side, float]
    """How much shorter it would be without each side."""
    bounds: dict[Side, Bounds]
    """The least and the greatest of each gain; both are the gain where nothing is missing."""
    gaps: tuple[Gap, ...]
    """Unexplained time that lengths and gains leave out, the longest piece first."""
    steps: tuple[int, ...]
    """The steps over which gains hold, together."""
    window: Span
    doubt: Doubt
    cause: Cause | Literal["damaged"] | None
    """Why there is no verdict, if there is none."""
    reason: str
    """Why this window, and why there is no verdict if there is none."""
    record: str | None
    """What to record so that the trace tells more."""
    sentence: str
    """What holds it up, and by how much."""
    actions: tuple[str, ...]
    """What can be done, in at most three lines."""
    caveat: str | None
    """What speaks against the answer first of all, if anything does."""
    left_out: tuple[str, ...]
    """More that can be done, and the caveat, where a short answer has no room for them."""
    limit: Hidden[tuple[str, str] | None] = None
    """What limits the program and by how much, in a few words; None where that is not known."""
