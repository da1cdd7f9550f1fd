"""What several remedies save together, and what limits the program then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longpole.answer.actions import saving_then, total
from longpole.answer.missing import told_ns
from longpole.answer.sentences import limit_then
from longpole.remedies.catalogue import RemedyId, together
from longpole.remedies.gains import Gain, Saving
from longpole.remedies.limits import status_of
from longpole.remedies.sides import Side
from longpole.words.data import Data

if TYPE_CHECKING:
    from collections.abc import Collection

    from longpole.remedies.facts import Facts


@dataclass(frozen=True, slots=True)
class AfterRemedies(Data):
    """The program after some remedies, in all places that they fit."""

    remedies: tuple[RemedyId, ...]
    """Those that fit, in the order in which they are made."""
    thens: tuple[Saving, ...]
    """What each saves after those before it, as a share of the mean step."""
    gain: Gain | None
    """What they save together of the mean step; None if none fits."""
    gains: dict[Side, float]
    """How much shorter the step would be without each side, after the certain changes; empty if the
    host runs ahead of the window, so that its work is not in it."""
    sentence: str
    """What they save together, and what limits the program then; empty if neither is known."""


def after_remedies(facts: Facts, remedies: Collection[str]) -> AfterRemedies:
    """Compute the gain of remedies in one graph, in the order of the plan."""
    lines, then = together(facts, remedies)
    gain = lines[-1].gain if lines else None
    is_certain = not any(line.remedy.is_upper_bound for line in lines)
    told = []
    if gain is not None and len({line.remedy.id for line in lines}) > 1:
        told += [f"{it.remedy.id}: {saving_then(it, is_first=it is lines[0])}." for it in lines]
        told.append(total(gain, told_ns(facts.parts), is_certain=is_certain))
    if then and status_of(facts.parts["limit"]) in {"ok", "balanced"}:
        told.append(f"After these changes, {limit_then(then)}.")
    return AfterRemedies(
        remedies=tuple(RemedyId(line.remedy.id) for line in lines),
        thens=tuple(line.then for line in lines),
        gain=gain,
        gains=then,
        sentence=" ".join(told),
    )
