"""A verdict as blocks: its sentence, what to do, and all remedies with their gains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.report.blocks import Column, Notes, Sentence, Table, Value, tabulated
from longpole.wording import whole_percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.report.blocks import Block
    from longpole.verdict.findings import Findings, Remedy

__all__ = ["basis_of", "left_out_of", "table_of", "verdict_blocks"]


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
    part = f"{len(steps)} of the {n_all:,} {verdict.window.unit}s"
    return [f"Remedies and their gains are those of {part}: {steps[0]} to {steps[-1]}."]


def left_out_of(verdict: Findings) -> list[str]:
    """List what a short verdict leaves out, for outputs with more room."""
    return [f"Also possible: {line}" for line in verdict.left_out]


def table_of(remedies: Sequence[Remedy], *, n_windows: int = 1) -> Table:
    """Return remedies as rows with their gains; of several steps, the mean."""
    columns: dict[Column, Value] = {
        Column("saves (mean)" if n_windows > 1 else "saves"): _interval,
        Column("remedy"): lambda row: row.remedy,
        Column("what to change", "name"): lambda row: row.advice,
        Column("event", "event"): lambda row: row.events[0] if row.events else None,
    }
    return tabulated(remedies, columns)


def _interval(row: Remedy) -> str:
    low, high = (whole_percent(max(gain, 0.0)) for gain in (row.gain_low, row.gain_high))
    return low if low == high else f"{low.removesuffix(' %')} to {high}"
