"""A verdict for people: its sentence, and the remedies with what they gain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from longpole.report.blocks import Column, Notes, Sentence, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.report.blocks import Block

__all__ = ["REMEDY_WORDS", "remedies_table", "table_of", "verdict_blocks"]

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


class _Remedy(Protocol):
    """What is told of a remedy."""

    @property
    def remedy(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    @property
    def named(self) -> bool: ...
    @property
    def gain_ns(self) -> int: ...
    @property
    def gain(self) -> float: ...
    @property
    def events(self) -> tuple[int, ...]: ...


class _Verdict(Protocol):
    """What is told of a verdict."""

    @property
    def status(self) -> str: ...
    @property
    def sentence(self) -> str: ...
    @property
    def record(self) -> str | None: ...
    @property
    def remedies(self) -> Sequence[_Remedy]: ...


def verdict_blocks(verdict: _Verdict) -> list[Block]:
    """Show a verdict: the sentence, the remedies, and what to record to know more."""
    table = remedies_table(verdict)
    blocks: list[Block] = [Sentence(verdict.sentence)]
    blocks += [table] if table.rows else []
    record = verdict.record
    return [*blocks, Notes([f"To know more, record {record}."])] if record else blocks


def remedies_table(verdict: _Verdict) -> Table:
    """List the remedies that gain most; gains overlap.

    Of a trace without GPU activities there are none: nothing tells what the host holds up.
    """
    known = [] if verdict.status == "no_device" else verdict.remedies
    helpful = [row for row in known if row.named or row.gain >= _LEAST_GAIN]
    helpful.sort(key=lambda row: -row.gain_ns)
    return table_of(helpful[:_MOST_ROWS])


def table_of(remedies: Sequence[_Remedy]) -> Table:
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
