"""The plan of a verdict: its lines with what they save, in data and in words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from longpole.answer.actions import (
    is_searched,
    left_ns,
    narrowed,
    planned_line,
    saving,
    saving_then,
    total,
)
from longpole.answer.findings import Plan, PlanLine
from longpole.answer.missing import told_ns
from longpole.remedies.catalogue import RemedyId, gained, planned
from longpole.remedies.gains import WORTH_SAYING
from longpole.remedies.modules import module_of
from longpole.remedies.plan import MOST_LINES
from longpole.words.wording import count, short_name, whole_percent

if TYPE_CHECKING:
    from longpole.remedies.catalogue import Gained
    from longpole.remedies.facts import Facts
    from longpole.remedies.gains import Saving
    from longpole.remedies.model import Found, Remedy
    from longpole.remedies.plan import Plan as Chosen


_WIDEST: Final = 60


def plan_in(facts: Facts) -> Plan:
    """Return the plan of a verdict; without lines if it is inconclusive."""
    if not is_searched(facts.parts):
        return Plan()
    chosen = planned(facts)
    lines = [_line(facts, chosen, place) for place in range(len(chosen.lines))]
    rows, _ = gained(facts)
    lines += [
        _told(facts, row.remedy, row.found, saving(row))
        for row in rows
        if not row.remedy.is_computed
    ]
    length_ns, gain = told_ns(facts.parts), chosen.gain
    told, served = "", facts.parts["served"]
    if gain is not None and len(chosen.lines) > 1:
        each = "" if served is None else f" per {served.noun}"
        told = total(gain, length_ns, is_certain=chosen.is_certain, each=each)
    return Plan(
        lines=tuple(lines[:MOST_LINES]),
        gain=gain,
        length_ns=length_ns,
        then_ns=None if gain is None else left_ns(gain, length_ns),
        sentence=told,
        obstacle=_in_the_way(facts, chosen),
    )


def _in_the_way(facts: Facts, chosen: Chosen) -> str:
    """Return what stands in the way of one more line; empty if nothing does."""
    if chosen.obstacle is None:
        return ""
    name, per_window, remedy, more = chosen.obstacle
    calls = count(max(round(per_window), 1), "call")
    return (
        f"{short_name(name, _WIDEST)} ({calls} {facts.each}) stands in the way of {remedy}, which "
        f"would save {whole_percent(more)} more; no remedy for it is known."
    )


def would_save(row: Gained, facts: Facts) -> bool:
    """Whether a remedy would surely save enough after all lines of the plan."""
    if not is_searched(facts.parts):
        return False
    left = planned(facts).rest.get((row.remedy.id, row.found.name), 0.0)
    return min(left, row.gain.low) >= WORTH_SAYING


def _line(facts: Facts, plan: Chosen, place: int) -> PlanLine:
    line = plan.lines[place]
    others = [key for key, of in plan.alternatives.items() if of == place]
    others = [key for key in others if key[0] != line.remedy.id]
    saved = saving_then(line, is_first=place == 0)
    told = _told(facts, line.remedy, line.found, saved, line.then)
    return replace(
        told,
        told=f"{told.told}{narrowed(line, facts.parts)}",
        sides=line.gain.sides,
        gain=line.gain,
        instead_of=tuple(dict.fromkeys(RemedyId(name) for name, _ in others)),
        parts=tuple(dict.fromkeys(RemedyId(part.remedy.id) for part in line.parts)),
        changes=tuple(line.found.careful),
        hopeful_changes=tuple(line.found.hopeful or line.found.careful),
    )


def _told(
    facts: Facts, remedy: Remedy, found: Found, saves: str, then: Saving | None = None
) -> PlanLine:
    """Return a line of the plan; without a computed gain, one that claims nothing."""
    # A line without a place is about the whole step.
    module = module_of(facts, found.events[0]) if found.name and found.events else None
    if module is not None and module in f"{found.advice}{found.evidence}":
        module = None
    return PlanLine(
        remedy=RemedyId(remedy.id),
        name=found.name,
        sides=(),
        effort=remedy.effort,
        is_certain=not remedy.is_upper_bound,
        advice=found.advice,
        evidence=found.evidence,
        then=then,
        gain=None,
        instead_of=(),
        parts=(),
        changes=(),
        hopeful_changes=(),
        events=tuple(found.events),
        told=planned_line(found, saves, short_name(module, _WIDEST) if module else None),
        saves=_saves(found, then, saves),
    )


def _saves(found: Found, then: Saving | None, told: str) -> tuple[float, float, str]:
    """Return least and most saving of a line, and its words; of start-up, the share it takes."""
    if found.takes is not None:
        return found.takes, found.takes, f"takes {whole_percent(found.takes)}"
    return (then.low, then.high, told) if then else (0.0, 0.0, told)
