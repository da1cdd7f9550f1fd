"""A comparison as blocks, for the commands that make one."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.compare.comparison import Verdict
from longpole.report.blocks import Column, Notes, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.bench.compare.comparison import Comparison, Difference
    from longpole.report.blocks import Block, Cell

__all__ = ["comparison_blocks", "plain_difference", "warnings_of"]

_COLUMNS: Final = (
    Column("verdict"),
    Column("key", "name"),
    Column("change", "change"),
    Column("interval", "number"),
    Column("base", "duration"),
    Column("new", "duration"),
    Column("runs", "number"),
    Column("measured"),
)


def comparison_blocks(comparison: Comparison) -> list[Block]:
    """Give the table of differences, and what is open and doubtful below it."""
    notes = [*_open_questions(comparison), *warnings_of(comparison)]
    table = Table(_COLUMNS, [_cells(each) for each in comparison.differences])
    return [table, *([Notes(notes)] if notes else [])]


def warnings_of(comparison: Comparison) -> Iterator[str]:
    """Say what makes the verdicts doubtful."""
    yield from comparison.warnings
    for difference in comparison.differences:
        yield from (f"{difference.key}: {warning}" for warning in difference.warnings)


def plain_difference(difference: Difference) -> dict[str, Any]:
    """Give all that is known of a key, intervals by their ends."""
    fields = asdict(difference)
    if difference.interval is not None:
        fields["interval"] = difference.interval._asdict()
    return fields


def _open_questions(comparison: Comparison) -> Iterator[str]:
    for difference in comparison.differences:
        if difference.verdict is Verdict.INCONCLUSIVE:
            yield f"{difference.key}: {difference.reason}"


def _cells(difference: Difference) -> tuple[Cell, ...]:
    base, new = (side.median_ns if side else None for side in (difference.base, difference.new))
    change = interval = None
    if difference.interval is not None:
        change = difference.change
        interval = " to ".join(f"{100 * end:+.1f} %" for end in difference.interval)
    measured = difference.design
    if measured == "separate":
        measured = "alternating" if difference.is_interleaved else "apart"
    names = (difference.verdict, difference.key)
    return (*names, change, interval, base, new, difference.n_runs, measured)
