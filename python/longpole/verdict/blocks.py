"""A verdict as blocks: its sentence, what to do, and all remedies with their gains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.report.blocks import Notes, Sentence
from longpole.windows import noun_of
from longpole.wording import duration, duration_range, whole_percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.report.blocks import Block
    from longpole.verdict.findings import Findings, Remedy, Span

__all__ = ["basis_of", "left_out_of", "ranked", "verdict_blocks"]


def verdict_blocks(verdict: Findings) -> list[Block]:
    """Show a verdict: what limits the program, what to do, and what else is known."""
    blocks: list[Block] = [Sentence(verdict.sentence)]
    n_remedies = sum(row.named for row in verdict.remedies)
    remedies, others = verdict.actions[:n_remedies], verdict.actions[n_remedies:]
    others = (*others, verdict.caveat) if verdict.caveat else others
    if remedies:
        blocks.append(Notes(remedies, are_numbered=True))
        others = (*others, *basis_of(verdict))
    return [*blocks, Notes(others)] if others else blocks


def basis_of(verdict: Findings) -> list[str]:
    """Return a note that remedies are those of a part of the steps, if so."""
    steps, n_all = verdict.remedy_steps, len(verdict.steps)
    if len(steps) == n_all:
        return []
    part = f"{len(steps)} of the {n_all:,} {noun_of(verdict.window.unit)}s"
    return [f"Remedies and their gains are those of {part}: {steps[0]} to {steps[-1]}."]


def left_out_of(verdict: Findings) -> list[str]:
    """List what a short verdict leaves out, for outputs with more room."""
    return [f"Also possible: {line}" for line in verdict.left_out]


def ranked(remedies: Sequence[Remedy], window: Span) -> Notes:
    """Return remedies as numbered lines with their gains in the mean of the windows."""
    return Notes([_ranked_line(row, window.mean_ns) for row in remedies], are_numbered=True)


def _ranked_line(row: Remedy, length_ns: int) -> str:
    evidence = f": {row.evidence}" if row.evidence else ""
    where = f" (event {row.events[0]})" if row.events else ""
    saved = f"saves {_interval(row)}, {_times(row, length_ns)}"
    return f"{row.remedy} {saved}. {row.advice}{evidence}{where}."


def _times(row: Remedy, length_ns: int) -> str:
    """Return the gain as a time."""
    low, high = (round(max(gain, 0.0) * length_ns) for gain in (row.gain_low, row.gain_high))
    if not low:
        return f"up to {duration(high)}" if high else duration(0)
    return duration(low) if duration(low) == duration(high) else duration_range(low, high)


def _interval(row: Remedy) -> str:
    low, high = (whole_percent(max(gain, 0.0)) for gain in (row.gain_low, row.gain_high))
    if low == high or high.startswith("less"):
        return high
    is_little = low == "0 %" or low.startswith("less")
    return f"up to {high}" if is_little else f"{low.removesuffix(' %')} to {high}"
