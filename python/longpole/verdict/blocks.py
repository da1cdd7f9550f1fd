"""A verdict for people: its sentence and what to do, and all remedies with what they gain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.blocks import Column, Notes, Sentence, Table, Value, tabulated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.report.blocks import Block
    from longpole.verdict.findings import Findings, Remedy

__all__ = ["REMEDY_WORDS", "table_of", "verdict_blocks", "verdict_reference"]

REMEDY_WORDS: Final = {
    "data_loading": "no data loading",
    "blocking_calls": "no waiting for the GPU",
    "allocation": "no allocation",
    "copies": "no time in copies",
    "communication": "no time in communication",
    "stream_waits": "no waits between streams",
    "function": "function takes no time",
    "host_work": "no host work",
    "kernels": "kernels twice as fast",
}
_ANSWERED: Final = frozenset({"ok", "balanced"})


def verdict_blocks(verdict: Findings) -> list[Block]:
    """Show a verdict: what holds the program up, what to do, and what speaks against the answer."""
    blocks: list[Block] = [Sentence(verdict.sentence)]
    blocks += [Notes(verdict.actions, are_numbered=True)] if verdict.actions else []
    return [*blocks, Notes([verdict.caveat])] if verdict.caveat else blocks


def verdict_reference(verdict: Findings, *, is_damaged: bool) -> Sentence:
    """Refer to the verdict of the summary, unless there is none or it rests on a damaged trace."""
    if is_damaged or verdict.status not in _ANSWERED:
        return Sentence(verdict.sentence)
    return Sentence("Verdict as in `longpole summary`.")


def table_of(
    remedies: Sequence[Remedy], *, n_windows: int = 1, mean_ns: float | None = None
) -> Table:
    """Show remedies as rows, with what each saves at most: of several steps, in the mean."""

    def most_ns(row: Remedy) -> int:
        if mean_ns is None or row.gain_high <= row.gain:
            return row.gain_ns
        return round(row.gain_high * mean_ns)

    columns: dict[Column, Value] = {
        Column("saves up to (mean)" if n_windows > 1 else "saves up to", "duration"): lambda row: (
            max(most_ns(row), 0)
        ),
        Column("share", "share"): lambda row: max(row.gain, row.gain_high, 0.0),
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
