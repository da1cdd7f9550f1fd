"""A verdict as part of an answer: the remedies with what they gain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.blocks import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.verdict import Remedy, Verdict

__all__ = ["REMEDY_WORDS", "remedies_table", "table_of"]

REMEDY_WORDS: Final = {
    "data_loading": "data loading takes no time",
    "blocking_calls": "calls do not wait for the GPU",
    "allocation": "allocation takes no time",
    "copies": "copies are hidden",
    "communication": "communication is hidden",
    "stream_waits": "streams do not wait for each other",
    "function": "the function takes no time",
    "host_work": "operators, Python and launches take no time",
    "kernels": "kernels are twice as fast",
}
_MOST_ROWS: Final = 6
_LEAST_GAIN: Final = 0.02


def remedies_table(verdict: Verdict) -> Table:
    """List the remedies that gain most; gains overlap."""
    helpful = [row for row in verdict.remedies if row.named or row.gain >= _LEAST_GAIN]
    helpful.sort(key=lambda row: -row.gain_ns)
    return table_of(helpful[:_MOST_ROWS])


def table_of(remedies: Sequence[Remedy]) -> Table:
    """Give remedies as rows, with what each saves at the most."""
    columns = (
        Column("saves up to", "duration"),
        Column("share", "share"),
        Column("if"),
        Column("name", "name"),
        Column("event", "number"),
    )
    rows = [
        (
            row.gain_ns,
            row.gain,
            REMEDY_WORDS[row.remedy],
            row.name or "",
            row.events[0] if row.events else None,
        )
        for row in remedies
    ]
    return Table(columns, rows)
