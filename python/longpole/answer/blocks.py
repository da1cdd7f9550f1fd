"""A verdict as blocks: its sentence, what to do, and all remedies with their gains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.engine.windows import noun_of
from longpole.remedies.gains import WORTH_SAYING
from longpole.report.blocks import Notes, Sentence
from longpole.words.wording import count, duration, whole_percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.answer.findings import Findings, Remedy, StartUp
    from longpole.report.blocks import Block

# Missing records that determine an upper bound; it is explained if it is at least the first share,
# and the lower bound is less than the second.
_MISSING: Final = frozenset(
    ("busy_stream", "missing_activities", "late_launches", "unexplained_time")
)
_MUCH: Final = 0.1

_WORTH: Final = whole_percent(WORTH_SAYING)


def verdict_blocks(verdict: Findings) -> list[Block]:
    """Show a verdict: what limits the program, what to do, and what else is known."""
    others = beside_remedies(verdict)
    blocks: list[Block] = [Sentence(verdict.sentence), *plan_blocks(verdict)]
    return [*blocks, Notes(others)] if others else blocks


def plan_blocks(verdict: Findings) -> list[Block]:
    """Show the plan: its lines, and what they save together."""
    plan = verdict.plan
    lines = [Notes([line.told for line in plan.lines], are_numbered=True)] if plan.lines else []
    return [*lines, *map(Sentence, filter(None, (plan.sentence, plan.obstacle)))]


def beside_remedies(verdict: Findings) -> list[str]:
    """Return what a verdict says besides its sentence and the lines of its plan."""
    n_lines = len(verdict.plan.lines)
    caveat = [verdict.caveat] if verdict.caveat else []
    basis = basis_of(verdict) if n_lines else []
    start_up = told_of(verdict.start_up)
    return [*verdict.actions[n_lines:], *none_of(verdict), *start_up, *caveat, *basis]


def told_of(start_up: StartUp | None) -> list[str]:
    """Return the sentence about start-up that the plan leaves out."""
    return [start_up.sentence] if start_up is not None and start_up.sentence else []


def none_of(verdict: Findings) -> list[str]:
    """Return a note if no remedy is known to save much, although the verdict is conclusive."""
    if not verdict.is_searched or verdict.plan.lines:
        return []
    if any(row.is_worth_saying for row in verdict.remedies):
        return [f"No remedy is sure to save {_WORTH} or more; `longpole whatif` lists what may."]
    if verdict.lacks_operators:
        return [f"By what is recorded, no remedy saves {_WORTH} or more."]
    return [f"No remedy that longpole knows saves {_WORTH} or more."]


def rest_of(verdict: Findings) -> list[Remedy]:
    """Return the remedies outside the plan that are worth saying: alternatives, and others.

    Others would still save enough after all lines of the plan.
    """
    instead = {it for line in verdict.plan.lines for it in line.instead_of}
    rows = [row for row in verdict.remedies if not row.named and row.is_worth_saying]
    return [row for row in rows if row.is_listed or row.remedy in instead]


def basis_of(verdict: Findings) -> list[str]:
    """Return a note if the remedies were searched in only part of the steps."""
    steps, n_all = verdict.remedy_steps, len(verdict.steps)
    if len(steps) == n_all:
        return []
    part = f"{len(steps)} of the {n_all:,} {noun_of(verdict.window.unit)}s"
    return [f"Remedies and their gains are those of {part}: {steps[0]} to {steps[-1]}."]


def with_gaps(verdict: Findings, length_ns: int) -> list[str]:
    """Return a note on a length that includes gaps, which the verdict about it leaves out."""
    if not verdict.gaps or verdict.window.n != 1:
        return []
    gaps = "the gap" if len(verdict.gaps) == 1 else f"{count(len(verdict.gaps), 'gap')}"
    total = duration(sum(gap.duration_ns for gap in verdict.gaps))
    return [f"{duration(length_ns)} with {gaps} of {total} that the verdict leaves out"]


def ranked(remedies: Sequence[Remedy]) -> Notes:
    """Return remedies as numbered lines with their gains, as a verdict lists them."""
    return Notes([_ranked_line(row) for row in remedies], are_numbered=True)


def _ranked_line(row: Remedy) -> str:
    evidence = f": {row.evidence}" if row.evidence else ""
    where = f" (event {row.events[0]})" if row.events else ""
    _, _, saved = row.saves
    if row.gain.high_by in _MISSING and row.gain.high >= _MUCH and row.gain.low < WORTH_SAYING:
        saved += ", depending on what the trace does not show"
    return f"{row.remedy}: {saved}{where}. {row.advice}{evidence}."
