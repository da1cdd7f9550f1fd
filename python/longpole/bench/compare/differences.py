"""The result of a comparison: the verdict on each key, its figures, and their display."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal

from longpole.bench.compare.figures import Side
from longpole.data import Data
from longpole.report.blocks import Column, Notes, Table
from longpole.statistics.interval import Interval

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.report.blocks import Block, Cell

__all__ = [
    "Comparison",
    "Difference",
    "Verdict",
    "comparison_blocks",
    "warnings_of",
]

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


class Verdict(StrEnum):
    """The verdict on a key, or on all keys together."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Difference(Data):
    """The change of one key."""

    key: str
    """Key of the base; of both measurements unless keys were paired."""
    verdict: Verdict
    reason: str
    """Reason for the verdict, as a sentence."""
    base: Side | None = None
    """Summary of the runs of the base; None without any."""
    new: Side | None = None
    """Summary of the runs of the new side; None without any."""
    change: float | None = None
    """Relative change of the time: 0.05 is 5 % slower."""
    interval: Interval | None = None
    """Confidence interval of the change."""
    p_value: float | None = None
    """Probability of such a change if there were none (or none beyond the gate, if the sides were
    measured separately), adjusted for the number of keys."""
    n_runs: int = 0
    """Number of runs per side, or of pairs of runs."""
    design: Literal["in turns", "separate"] = "separate"
    """Whether the sides were measured in turns or separately."""
    is_interleaved: bool = False
    """Whether the runs of both sides alternated."""
    smallest_change: float | None = None
    """Change that would be detected in 80 of 100 such comparisons."""
    runs_needed: int | None = None
    """Runs per side needed to detect a change of the size of the gate in 80 of 100 comparisons."""
    warnings: tuple[str, ...] = ()
    """Warnings about the verdict."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """All keys of two measurements, first those of the base in its order."""

    differences: tuple[Difference, ...]
    gate: float
    confidence: float
    warnings: tuple[str, ...]

    def _repr_html_(self) -> str:
        from longpole.report.html import html

        return html(comparison_blocks(self))

    @property
    def verdict(self) -> Verdict:
        """Most severe verdict of all: slower, then inconclusive, then faster, then same."""
        found = {difference.verdict for difference in self.differences}
        for verdict in (Verdict.SLOWER, Verdict.INCONCLUSIVE, Verdict.FASTER, Verdict.SAME):
            if verdict in found:
                return verdict
        return Verdict.INCONCLUSIVE


def comparison_blocks(comparison: Comparison) -> list[Block]:
    """Return the table of differences, and below it what is inconclusive or doubtful."""
    notes = [*_open_questions(comparison), *warnings_of(comparison)]
    table = Table(_COLUMNS, [_cells(each) for each in comparison.differences])
    return [table, *([Notes(notes)] if notes else [])]


def warnings_of(comparison: Comparison) -> Iterator[str]:
    """Yield the warnings about the verdicts."""
    yield from comparison.warnings
    for difference in comparison.differences:
        yield from (f"{difference.key}: {warning}" for warning in difference.warnings)


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
    measured: str = difference.design
    if measured == "separate":
        measured = "alternating" if difference.is_interleaved else "apart"
    names = (difference.verdict, difference.key)
    return (*names, change, interval, base, new, difference.n_runs, measured)
