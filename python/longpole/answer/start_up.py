"""Start-up that a plan leaves out, in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.answer.findings import StartUp
from longpole.answer.sentences import limit_then
from longpole.remedies.gains import WORTH_SAYING, gains_after
from longpole.remedies.limits import limit_after, sides_of
from longpole.remedies.start_up import start_up

if TYPE_CHECKING:
    from longpole.remedies.facts import Facts
    from longpole.remedies.start_up import StartUp as Found


def start_up_in(facts: Facts) -> StartUp | None:
    """Return the start-up in the windows of a verdict; None if it is not worth saying."""
    found = start_up(facts)
    if found is None or found.share < WORTH_SAYING:
        return None
    return StartUp(
        duration_ns=found.duration_ns,
        share=found.share,
        is_answer=found.is_most,
        sentence="" if found.is_most else _sentence(facts, found),
        events=found.events,
    )


def _sentence(facts: Facts, found: Found) -> str:
    told = f"{found.told[0].upper()}{found.told[1:]}. The plan leaves it out"
    then = gains_after(facts.core, found.changes)
    if then and sides_of(limit_after(then)) != sides_of(facts.parts["limit"]):
        return f"{told}; without it, {limit_then(then)}."
    return f"{told}."
