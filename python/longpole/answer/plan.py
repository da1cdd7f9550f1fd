"""The plan of a verdict: its lines with what they save, in data and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.answer.actions import is_searched, planned_line, saving, saving_then, total
from longpole.answer.findings import Plan, PlanLine, Saving
from longpole.answer.missing import told_ns
from longpole.remedies.catalogue import RemedyId, gained, planned
from longpole.remedies.gains import WORTH_SAYING
from longpole.remedies.plan import MOST_LINES

if TYPE_CHECKING:
    from longpole.remedies.catalogue import Gained
    from longpole.remedies.facts import Facts
    from longpole.remedies.plan import Plan as Chosen


def plan_in(facts: Facts) -> Plan:
    """Return the plan of a verdict; without lines if it is inconclusive."""
    if not is_searched(facts.parts):
        return Plan()
    chosen = planned(facts)
    lines = [_line(chosen, place) for place in range(len(chosen.lines))]
    rows, _ = gained(facts)
    lines += [_uncomputed(row) for row in rows if not row.remedy.is_computed]
    length_ns, gain = told_ns(facts.parts), chosen.gain
    told = ""
    if gain is not None and len(chosen.lines) > 1:
        told = total(gain, length_ns, is_certain=chosen.is_certain)
    return Plan(
        lines=tuple(lines[:MOST_LINES]),
        gain=gain,
        length_ns=length_ns,
        then_ns=None if gain is None else _then_ns(gain.low, gain.high, length_ns),
        sentence=told,
    )


def would_save(row: Gained, facts: Facts) -> bool:
    """Whether a remedy would surely save enough after all lines of the plan."""
    if not is_searched(facts.parts):
        return False
    left = planned(facts).rest.get((row.remedy.id, row.found.name), 0.0)
    return min(left, row.gain.low) >= WORTH_SAYING


def _then_ns(low: float, high: float, length_ns: int) -> tuple[int, int]:
    return max(round((1 - high) * length_ns), 0), round((1 - low) * length_ns)


def _line(plan: Chosen, place: int) -> PlanLine:
    line = plan.lines[place]
    others = [key for key, of in plan.alternatives.items() if of == place]
    saves = saving_then(line, is_first=place == 0)
    found = line.found
    return PlanLine(
        remedy=RemedyId(line.remedy.id),
        name=found.name,
        sides=line.gain.sides,
        effort=line.remedy.effort,
        is_certain=not line.remedy.is_upper_bound,
        advice=found.advice,
        evidence=found.evidence,
        then=Saving(*line.then),
        gain=line.gain,
        instead_of=tuple(dict.fromkeys(RemedyId(name) for name, _ in others)),
        changes=tuple(found.careful),
        hopeful_changes=tuple(found.hopeful or found.careful),
        events=tuple(found.events),
        told=planned_line(found, saves),
        saves=(line.then.low, line.then.high, saves),
    )


def _uncomputed(row: Gained) -> PlanLine:
    """Return a remedy without a computed gain as the last line."""
    found, saves = row.found, saving(row)
    return PlanLine(
        remedy=RemedyId(row.remedy.id),
        name=found.name,
        sides=(),
        effort=row.remedy.effort,
        is_certain=not row.remedy.is_upper_bound,
        advice=found.advice,
        evidence=found.evidence,
        then=None,
        gain=None,
        instead_of=(),
        changes=(),
        hopeful_changes=(),
        events=tuple(found.events),
        told=planned_line(found, saves),
        saves=(0.0, 0.0, saves),
    )
