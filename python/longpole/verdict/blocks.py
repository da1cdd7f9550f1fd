"""A verdict for people: its sentence, and the remedies with what they gain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.blocks import Column, Notes, Sentence, Table, Value, tabulated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.report.blocks import Block
    from longpole.verdict.findings import Findings, Remedy

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
_MOST_ROWS: Final = 8

# The order in which a sentence names them.
_TOLD: Final = (
    "data_loading",
    "allocation",
    "host_work",
    "communication",
    "copies",
    "kernels",
    "blocking_calls",
    "stream_waits",
    "function",
)
_WAITS: Final = ("blocking_calls", "stream_waits")
_LEAST_GAIN: Final = 0.02
_WITHOUT_GAINS: Final = frozenset({"no_device", "inconclusive"})


def verdict_blocks(verdict: Findings) -> list[Block]:
    """Show a verdict: the sentence, the remedies, and what to record to know more."""
    table = remedies_table(verdict)
    blocks: list[Block] = [Sentence(verdict.sentence)]
    blocks += [table] if table.rows else []
    record = verdict.record
    return [*blocks, Notes([f"To know more, record {record}."])] if record else blocks


def remedies_table(verdict: Findings) -> Table:
    """List the remedies: those that the sentence names in its order, then what gains most.

    There are none without GPU activities, where nothing tells what the host holds up, and none
    where the trace does not tell what holds the program up: the gains would not hold either.
    """
    known = [] if verdict.status in _WITHOUT_GAINS else verdict.remedies
    best = max(verdict.gains.values(), default=0.0)

    def told(row: Remedy) -> tuple[bool, int]:
        leads = row.remedy in _WAITS and row.gain > best
        return not leads, _TOLD.index(row.remedy)

    named = sorted((row for row in known if row.named), key=told)
    others = [row for row in known if not row.named and row.gain >= _LEAST_GAIN]
    others.sort(key=lambda row: -row.gain_ns)
    return table_of([*named, *others][:_MOST_ROWS], n_windows=verdict.window.n)


def table_of(remedies: Sequence[Remedy], *, n_windows: int = 1) -> Table:
    """Give remedies as rows, with what each saves at the most: of several steps, in the mean."""
    columns: dict[Column, Value] = {
        Column("saves up to (mean)" if n_windows > 1 else "saves up to", "duration"): lambda row: (
            max(row.gain_ns, 0)
        ),
        Column("share", "share"): lambda row: max(row.gain, 0.0),
        Column("with"): lambda row: _what(row)[0],
        Column("name", "name"): lambda row: _what(row)[1],
        Column("event", "number"): lambda row: row.events[0] if row.events else None,
    }
    return tabulated(remedies, columns)


def _what(row: Remedy) -> tuple[str, str | None]:
    """Say what is done, and where: calls that wait with the operator they are in."""
    operator, separator, frame = (row.name or "").partition(" in ")
    if row.remedy == "blocking_calls" and separator:
        return f"no waiting in {operator}", frame
    return REMEDY_WORDS[row.remedy], row.name
