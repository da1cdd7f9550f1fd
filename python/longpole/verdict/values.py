"""A verdict, as Python and data see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longpole.critical_path.changes import change_of
from longpole.verdict.actions import actions, all_actions
from longpole.verdict.advice import advice
from longpole.verdict.blocks import verdict_blocks
from longpole.verdict.findings import Bounds, Doubt, Findings, Gap, Remedy, Span
from longpole.verdict.gains import MOST_WORDS, n_words
from longpole.verdict.sentences import caveat, sentence

if TYPE_CHECKING:
    from longpole.report.blocks import Block
    from longpole.verdict.parts import RemedyParts, VerdictParts

__all__ = ["Verdict", "verdict_of"]


@dataclass(frozen=True, slots=True)
class Verdict(Findings):
    """The bottleneck of a program, and what to do about it."""

    def __str__(self) -> str:
        return " ".join([self.sentence, *self.actions, *([self.caveat] if self.caveat else [])])

    def blocks(self) -> list[Block]:
        """Show it to people, as the report does."""
        return verdict_blocks(self)

    def _repr_html_(self) -> str:
        from longpole.report.html import html

        return html(self.blocks())


def verdict_of(parts: VerdictParts) -> Verdict:
    """Put what the core found into values and words."""
    doubt = parts["doubt"]
    reason, record = advice(parts)
    told, against = sentence(parts), caveat(parts)
    first = " ".join(actions(parts, 0))
    if n_words(f"{told} {first} {against or ''}") > MOST_WORDS:
        against = None
    left = MOST_WORDS - n_words(f"{told} {against or ''}")
    shown = actions(parts, left)
    whole = [*all_actions(parts), caveat(parts)]
    return Verdict(
        status=parts["status"],
        sides=tuple(parts["sides"]),
        remedies=tuple(map(_remedy, parts["remedies"])),
        gains=dict(parts["gains"]),
        bounds={side: Bounds(*bounds) for side, bounds in parts["bounds"]},
        gaps=tuple(
            Gap(hole["duration_ns"], hole["event"], hole["busy_ns"]) for hole in parts["holes"]
        ),
        steps=tuple(parts["numbers"]),
        window=_window(parts),
        doubt=Doubt(doubt["unknown"], doubt["floor"], doubt["unlinked"], doubt["inferred"]),
        cause=parts["cause"] if parts["status"] == "inconclusive" else None,
        reason=reason,
        record=record,
        sentence=told,
        actions=tuple(shown),
        caveat=against,
        left_out=tuple(line for line in whole if line and line not in {*shown, against}),
    )


def _remedy(remedy: RemedyParts) -> Remedy:
    gain_low, gain_high, low_by, high_by = remedy["bounds"]
    return Remedy(
        remedy=remedy["remedy"],
        side=remedy["side"],
        name=remedy["name"],
        named=remedy["named"],
        gain_ns=remedy["gain_ns"],
        gain=remedy["gain"],
        gain_low=gain_low,
        gain_high=gain_high,
        low_by=low_by,
        high_by=high_by,
        changes=tuple(change_of(change) for change in remedy["changes"]),
        events=tuple(remedy["events"]),
    )


def _window(parts: VerdictParts) -> Span:
    length_ns, min_ns, max_ns, _ = parts["lengths_ns"]
    numbers = parts["numbers"]
    return Span(
        unit=parts["unit"],
        number=numbers[parts["shown"]] if numbers else None,
        length_ns=length_ns,
        min_ns=min_ns,
        max_ns=max_ns,
        n=parts["n_windows"],
        outliers=tuple(numbers[place] if numbers else place for place in parts["outliers"]),
    )
