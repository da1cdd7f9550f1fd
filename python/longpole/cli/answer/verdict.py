"""A verdict as part of an answer: the remedies with what they gain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.blocks import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.verdict import Remedy, Verdict

__all__ = ["REMEDY_WORDS", "remedies_table", "table_of"]

REMEDY_WORDS: Final = {
    "data_loading": "no data loading",
    "blocking_calls": "no waiting for the GPU",
    "allocation": "no allocation",
    "copies": "copies hidden",
    "communication": "communication hidden",
    "stream_waits": "no waits between streams",
    "function": "function takes no time",
    "host_work": "no host work",
    "kernels": "kernels twice as fast",
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
        Column("with"),
        Column("name", "name"),
        Column("event", "number"),
    )
    rows = [
        (
            row.gain_ns,
            row.gain,
            REMEDY_WORDS[row.remedy],
            row.name,
            row.events[0] if row.events else None,
        )
        for row in remedies
    ]
    return Table(columns, rows)
