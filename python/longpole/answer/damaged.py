"""The verdict on a damaged trace: only what the damage cannot have caused.

The only advice is to use the whole file, since what is missing may have been recorded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from longpole.answer.findings import Plan
from longpole.answer.missing import window
from longpole.answer.withheld import withheld
from longpole.remedies.limits import (
    Both,
    DependsOnCost,
    NoDevice,
    NoneAlone,
    NotShown,
    Sides,
    Waits,
    sides_of,
)
from longpole.words.wording import whole_percent

if TYPE_CHECKING:
    from longpole.answer.values import Verdict
    from longpole.files.damage import Damage
    from longpole.remedies.parts import VerdictParts


def damaged(verdict: Verdict, parts: VerdictParts, damage: Damage) -> Verdict:
    """Remove what the damage may have caused, and report the damage first."""
    if damage.is_grave:
        return withheld(verdict, "damaged", "the trace is damaged", damage.sentence)
    remedies = tuple(replace(remedy, is_listed=False) for remedy in verdict.remedies)
    told = f"{damage.sentence} {window(parts)}{_rest(parts)}."
    return replace(
        verdict,
        remedies=remedies,
        record=None,
        sentence=told,
        actions=(),
        plan=Plan(),
        caveat=None,
    )


def _rest(parts: VerdictParts) -> str:
    """Describe what the rest of the trace shows."""
    limit = parts["limit"]
    match limit:
        case NoDevice():
            return "; no GPU activity was read"
        case NotShown():
            return "; the trace does not show what limits it"
        case NoneAlone():
            return "; no side alone limits it"
        case Sides() | Waits() | Both() | DependsOnCost():
            side = sides_of(limit)[0]
            gain = whole_percent(max(parts["gains"][side].high, 0.0))
            work = "host work" if side == "host" else side
            return f"; up to {gain} shorter without {work}"
        case _:
            assert_never(limit)
