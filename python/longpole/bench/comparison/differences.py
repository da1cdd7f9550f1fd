"""The result of a comparison: the verdict on each key, its figures and how to show them.

It also has the schedule of looks. Stopping at the first run after which a difference appears finds
one in one of five comparisons without a difference. Three looks, after 7, 14 and 28 runs, at levels
that sum to the requested one, keep the error rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal

from longpole.report.blocks import Column, Notes, Table
from longpole.rows.statistics import Interval
from longpole.words.data import Data

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from longpole.report.blocks import Block, Cell

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
    new_key: str | None = None
    """Key of the new side, if it differs from that of the base."""

    def is_beyond(self, gate: float) -> bool | None:
        """Whether the new side is slower by more than the gate; None if the data leaves it open.

        Examples
        --------
        >>> slower = Difference("a", Verdict.SLOWER, "", interval=Interval(0.02, 0.05))
        >>> slower.is_beyond(0.01), slower.is_beyond(0.03), slower.is_beyond(0.06)
        (True, None, False)
        """
        if self.interval is None:
            return None
        if self.interval.low > gate and self.verdict is Verdict.SLOWER:
            return True
        return None if self.interval.high > gate else False

    @property
    def name(self) -> str:
        """The key, or both keys if they differ."""
        return self.key if self.new_key is None else f"{self.key} -> {self.new_key}"


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


def comparison_blocks(*comparisons: Comparison) -> list[Block]:
    """Return one table of all differences, followed by the reasons and warnings."""
    notes = [note for each in comparisons for note in (*_open_questions(each), *warnings_of(each))]
    rows = [_cells(difference) for each in comparisons for difference in each.differences]
    return [Table(_COLUMNS, rows), *([Notes(list(dict.fromkeys(notes)))] if notes else [])]


def warnings_of(comparison: Comparison) -> Iterator[str]:
    """Yield the warnings about the verdicts."""
    yield from comparison.warnings
    for difference in comparison.differences:
        yield from (f"{difference.name}: {warning}" for warning in difference.warnings)


def _open_questions(comparison: Comparison) -> Iterator[str]:
    for difference in comparison.differences:
        if difference.verdict is Verdict.INCONCLUSIVE:
            yield f"{difference.name}: {difference.reason}"


def _cells(difference: Difference) -> tuple[Cell, ...]:
    base, new = (side.median_ns if side else None for side in (difference.base, difference.new))
    change = interval = None
    if difference.interval is not None:
        change = difference.change
        interval = " to ".join(f"{100 * end:+.1f} %" for end in difference.interval)
    measured: str = difference.design
    if measured == "separate":
        measured = "alternating" if difference.is_interleaved else "apart"
    names = (difference.verdict, difference.name)
    return (*names, change, interval, base, new, difference.n_runs, measured)


@dataclass(frozen=True, slots=True)
class Side:
    """Summary of the runs of one side."""

    n_runs: int
    """Number of runs with a time."""
    n_samples: int
    """Number of their samples."""
    median_ns: float
    """Median over the runs."""
    spread: float | None
    """Robust spread of the runs, as a fraction; None for a single run."""
    n_failed: int = 0
    n_unusable: int = 0
    """Number of invalid times."""
    n_dropped: int = 0
    """Number of samples dropped for the conditions in which they were taken."""
    n_disturbed: int = 0
    """Number of runs with too many dropped samples."""


LOOKS: Final = (7, 14, 28)
"""Runs of each side after which a comparison is evaluated."""

# The levels sum to 5 %. Seven runs can reach 2 / 2**7; the other looks share the rest.
_LEVELS: Final = (0.0157, 0.0171, 0.0171)
_WHOLE: Final = 0.05


def level_at(n_runs: int, plans: Collection[tuple[int, ...]], level: float) -> float:
    """Return the significance level of a look after `n_runs` runs.

    Parameters
    ----------
    n_runs
        Runs of each side.
    plans
        The planned looks; `(10,)` or none is one look.
    level
        Level of all looks together.

    Examples
    --------
    >>> [level_at(n, [LOOKS], 0.05) for n in (7, 14, 28)]
    [0.0157, 0.0171, 0.0171]
    >>> level_at(10, [(10,)], 0.05)
    0.05
    """
    if all(len(plan) <= 1 for plan in plans):
        return level
    shares = dict(zip(LOOKS, _LEVELS, strict=True))
    # Stopped by the user: this is an additional look and gets the strictest level.
    return shares.get(n_runs, min(_LEVELS)) / _WHOLE * level
