"""The verdict on a damaged trace: only what the damage cannot have caused.

The only advice is to use the whole file, since what is missing may have been recorded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longpole.answer.missing import window
from longpole.answer.withheld import withheld
from longpole.words.wording import whole_percent

if TYPE_CHECKING:
    from longpole.answer.values import Verdict
    from longpole.files.damage import Damage
    from longpole.remedies.parts import VerdictParts

__all__ = ["damaged"]


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
        caveat=None,
        left_out=(),
    )


def _rest(parts: VerdictParts) -> str:
    """Describe what the rest of the trace shows."""
    match parts["status"]:
        case "no_device":
            return "; no GPU activity was read"
        case "inconclusive":
            return "; the trace does not show what limits it"
        case _ if parts["waits_lead"]:
            return "; waits limit it more than any work does"
        case _ if not parts["sides"]:
            return "; removing any one side saves less than 5 %"
        case _:
            side = parts["sides"][0]
            gain = whole_percent(max(dict(parts["gains"])[side], 0.0))
            work = "host work" if side == "host" else side
            return f"; up to {gain} shorter without {work}"
