"""What several remedies save together, and what limits the program then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longpole.answer.actions import between
from longpole.answer.sentences import limit_then
from longpole.remedies.catalogue import RemedyId, gained, together
from longpole.remedies.gains import Gain
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
    """Those that fit."""
    gain: Gain
    """What they save together of the mean step."""
    gains: dict[Side, float]
    """How much shorter the step would be without each side, after the certain changes; empty if the
    host runs ahead of the window, so that its work is not in it."""
    sentence: str
    """What they save together, and what limits the program then; empty if neither is known."""


def after_remedies(facts: Facts, remedies: Collection[str]) -> AfterRemedies:
    """Compute the gain of remedies in one graph, in the order of the verdict."""
    rows = [row for row in gained(facts)[0] if row.remedy.id in remedies]
    gain, then = together(facts, rows)
    is_possible = any(row.remedy.is_upper_bound for row in rows)
    told = []
    if len({row.remedy.id for row in rows}) > 1:
        told.append(f"Together they save {between(0.0 if is_possible else gain.low, gain.high)}.")
    if then and status_of(facts.parts["limit"]) in {"ok", "balanced"}:
        told.append(f"After these changes, {limit_then(then)}.")
    return AfterRemedies(
        remedies=tuple(dict.fromkeys(RemedyId(row.remedy.id) for row in rows)),
        gain=gain,
        gains=then,
        sentence=" ".join(told),
    )
