"""What a verdict finds, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

from longpole.critical_path.changes import Change
from longpole.data import Data
from longpole.verdict.parts import RemedyKind, Side, Status, Unit

__all__ = ["Doubt", "Findings", "Remedy", "Span"]


@dataclass(frozen=True, slots=True)
class Remedy(Data):
    """A change that can shorten the program, and what it gains at most.

    Gains of several remedies overlap and are never added.
    """

    remedy: RemedyKind
    side: Side
    name: str | None
    """The place, function, family or kernel it is about; None for all."""
    named: bool
    """Whether the sentence names it."""
    gain_ns: int
    """Of the mean step, rounded down. Below 0 it would cost."""
    gain: float
    """As a share of the time."""
    changes: tuple[Change, ...]
    """For `CriticalPath.what_if`, which gives the same gain."""
    events: tuple[int, ...]
    """Rows of `Trace.events` that show it best."""


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
class Findings(Data):
    """What holds a program up, and what can be done about it."""

    status: Status
    sides: tuple[Side, ...]
    """What holds it up, the greatest first."""
    remedies: tuple[Remedy, ...]
    """What can be done, the cheapest first."""
    gains: dict[Side, float]
    """How much shorter it would be without each side."""
    steps: tuple[int, ...]
    """The steps over which gains hold, together."""
    window: Span
    doubt: Doubt
    reason: str
    """Why this window, and why there is no verdict if there is none."""
    record: str | None
    """What to record so that the trace tells more."""
    sentence: str
