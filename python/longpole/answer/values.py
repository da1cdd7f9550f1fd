"""The verdict as a Python object, with its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from longpole.answer.actions import actions, is_explained, is_searched, saving
from longpole.answer.advice import advice
from longpole.answer.blocks import told_of, verdict_blocks
from longpole.answer.findings import Findings, Gap, Plan, Remedy, Span, Uncertainty
from longpole.answer.missing import step_range_ns
from longpole.answer.plan import plan_in, would_save
from longpole.answer.sentences import caveat, limit_words, sentence
from longpole.answer.spent import lacks_operators
from longpole.answer.start_up import start_up_in
from longpole.remedies.catalogue import RemedyId, gained
from longpole.remedies.limits import NoDevice, limit_of, with_cost
from longpole.report.blocks import Notes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.engine.recording_cost import RecordingCost
    from longpole.remedies.catalogue import Gained
    from longpole.remedies.facts import Facts
    from longpole.remedies.gains import Gain
    from longpole.remedies.parts import CoreParts, ServedSteps, VerdictParts
    from longpole.remedies.sides import Side
    from longpole.report.blocks import Block


@dataclass(frozen=True, slots=True)
class Verdict(Findings):
    """The bottleneck of a program, and what to do about it."""

    def __str__(self) -> str:
        beside = (*told_of(self.start_up), self.caveat, self.recorded)
        return " ".join([self.sentence, *self.actions, *filter(None, beside)])

    def blocks(self) -> list[Block]:
        """Show the verdict in the form of the report."""
        notes = [Notes([self.recorded])] if self.recorded else []
        return [*verdict_blocks(self), *notes]

    def _repr_html_(self) -> str:
        from longpole.report.html import html

        return html(self.blocks())


def with_trace(
    parts: CoreParts,
    gains: Mapping[Side, Gain],
    *,
    cost: RecordingCost | None = None,
    between: tuple[int, int] | None = None,
    recorded_ns: int | None = None,
    n_earlier: int = 0,
    served: ServedSteps | None = None,
    in_use: tuple[str, ...] = (),
) -> VerdictParts:
    """Add facts about the trace and the request that the core's results do not contain.

    If the trace has GPU activities but the only window has none, nothing can be compared in it.
    """
    is_idle = parts["n_windows"] == 1 and not parts["recorded"]["n_activities"]
    runs_elsewhere = is_idle and parts["limit"] != "no_device"
    if runs_elsewhere:
        parts = {**parts, "limit": "no_device", "sides": [], "cause": None, "gaps": []}
    limit = limit_of(parts["limit"], parts["sides"], parts["cause"])
    is_estimated = cost is not None and cost["status"] == "estimated"
    known: VerdictParts = {
        **cast("VerdictParts", {name: part for name, part in parts.items() if name != "sides"}),
        "limit": with_cost(limit, gains) if is_estimated else limit,
        "gains": {**gains},
        "runs_elsewhere": runs_elsewhere,
        "recording_cost": cost,
        "recorded_ns": recorded_ns,
        "n_earlier": n_earlier,
        "served": served,
        "in_use": in_use,
        "range_ns": None if between is None else between[1] - between[0],
    }
    return known


def verdict_of(parts: VerdictParts, facts: Facts) -> Verdict:
    """Convert the results of the core to values and sentences."""
    uncertainty = parts["uncertainty"]
    has_device = not isinstance(parts["limit"], NoDevice)
    rows, failures = gained(facts) if has_device else ([], [])
    plan = plan_in(facts) if has_device else Plan()
    named = {(line.remedy, line.name) for line in plan.lines}
    reason, record = advice(parts)
    planned = {side for line in plan.lines for side in line.sides}
    told, against = sentence(parts), caveat(parts, planned)
    lines = actions(plan, facts)
    against = " ".join(filter(None, [against, *failures])) or None
    return Verdict(
        limit=parts["limit"],
        remedies=tuple(
            _remedy(row, is_named=_key(row) in named, would_save=would_save(row, facts))
            for row in rows
        ),
        plan=plan,
        gains=parts["gains"],
        gaps=tuple(Gap(gap["duration_ns"], gap["event"], gap["busy_ns"]) for gap in parts["gaps"]),
        start_up=start_up_in(facts) if is_searched(parts) else None,
        steps=tuple(parts["numbers"]),
        remedy_steps=facts.numbers,
        window=_window(parts),
        step_range_ns=step_range_ns(parts),
        uncertainty=Uncertainty(
            uncertainty["unknown"],
            uncertainty["floor"],
            uncertainty["unlinked"],
            uncertainty["inferred"],
        ),
        reason=reason,
        record=record,
        sentence=told,
        actions=tuple(lines),
        caveat=against,
        is_searched=is_searched(parts),
        lacks_operators=is_searched(parts)
        and lacks_operators(facts, is_explained=is_explained(plan, facts)),
        limited_by=limit_words(parts),
    )


def _key(row: Gained) -> tuple[str, str | None]:
    return row.remedy.id, row.found.name


def _remedy(row: Gained, *, is_named: bool, would_save: bool) -> Remedy:
    found = row.found
    return Remedy(
        remedy=RemedyId(row.remedy.id),
        sides=row.gain.sides,
        effort=row.remedy.effort,
        name=found.name,
        named=is_named,
        advice=found.advice,
        evidence=found.evidence,
        gain=row.gain,
        changes=tuple(found.careful),
        hopeful_changes=tuple(found.hopeful or found.careful),
        events=tuple(found.events),
        saves=(row.gain.low, row.gain.high, saving(row)),
        is_listed=is_named or would_save,
        forms=tuple(found.forms),
    )


def _window(parts: VerdictParts) -> Span:
    length_ns, min_ns, max_ns, total_ns = parts["lengths_ns"]
    numbers = parts["numbers"]
    return Span(
        unit=parts["unit"],
        number=numbers[parts["shown"]] if numbers else None,
        length_ns=length_ns,
        mean_ns=round(total_ns / max(parts["n_windows"], 1)),
        min_ns=min_ns,
        max_ns=max_ns,
        n=parts["n_windows"],
        outliers=tuple(numbers[place] if numbers else place for place in parts["outliers"]),
        caught_up_ns=parts["caught_up_ns"],
    )
