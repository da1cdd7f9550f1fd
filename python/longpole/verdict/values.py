"""The values of a verdict, as Python and data see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longpole.critical_path.changes import Change, change_of
from longpole.data import Data
from longpole.verdict.advice import advice
from longpole.verdict.blocks import verdict_blocks
from longpole.verdict.parts import RemedyKind, Side, Status, Unit
from longpole.verdict.sentences import sentence

if TYPE_CHECKING:
    from longpole.report.blocks import Block
    from longpole.verdict.parts import VerdictParts

__all__ = ["Doubt", "Remedy", "Span", "Verdict", "verdict_of"]


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
class Verdict(Data):
    """The bottleneck of a program, and what to do about it."""

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

    def __str__(self) -> str:
        return self.sentence

    def blocks(self) -> list[Block]:
        """Show it to people, as the report does."""
        return verdict_blocks(self)

    def _repr_html_(self) -> str:
        from longpole.report.html import html

        return html(self.blocks())


def verdict_of(parts: VerdictParts) -> Verdict:
    """Put what the core found into values and words."""
    shown_ns, min_ns, max_ns, _ = parts["lengths_ns"]
    numbers, doubt = parts["numbers"], parts["doubt"]
    reason, record = advice(parts)
    return Verdict(
        status=parts["status"],
        sides=tuple(parts["sides"]),
        remedies=tuple(
            Remedy(
                remedy=remedy["remedy"],
                side=remedy["side"],
                name=remedy["name"],
                named=remedy["named"],
                gain_ns=remedy["gain_ns"],
                gain=remedy["gain"],
                changes=tuple(change_of(change) for change in remedy["changes"]),
                events=tuple(remedy["events"]),
            )
            for remedy in parts["remedies"]
        ),
        gains=dict(parts["gains"]),
        steps=tuple(numbers),
        window=Span(
            unit=parts["unit"],
            number=numbers[parts["shown"]] if numbers else None,
            length_ns=shown_ns,
            min_ns=min_ns,
            max_ns=max_ns,
            n=parts["n_windows"],
            outliers=tuple(numbers[place] if numbers else place for place in parts["outliers"]),
        ),
        doubt=Doubt(doubt["unknown"], doubt["floor"], doubt["unlinked"], doubt["inferred"]),
        reason=reason,
        record=record,
        sentence=sentence(parts),
    )
