"""A table as blocks: its rows or why it has none, and what is said about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longpole.report.blocks import Notes, Sentence
from longpole.report.document import table_of
from longpole.tables.catalogue import MOST_ROWS, question
from longpole.tables.empty_tables import why_empty
from longpole.tables.impossible_values import impossible_values
from longpole.tables.legends import legend
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from longpole.engine.windows import Window
    from longpole.report.blocks import Block
    from longpole.trace.trace import Trace


def answer_blocks(
    name: str,
    trace: Trace,
    window: Window | None = None,
    by: str | None = None,
    *,
    most: int = MOST_ROWS,
) -> Sequence[Block]:
    """Return the answer about a window as blocks, with at most `most` rows of a frame."""
    of_view = {} if by is None else {"by": by}
    answer = question(name)(trace, window, **of_view)
    if hasattr(answer, "blocks"):
        return [*answer.blocks(), *map(Sentence, impossible_values(name, trace, by))]
    if answer.is_empty():
        return [Sentence(why_empty(name, trace, by))]
    notes = [*legend(name, answer.head(most), by), *impossible_values(name, trace, by, answer)]
    return [*_frame_blocks(answer, most), *map(Sentence, notes)]


def _frame_blocks(frame: pl.DataFrame, most: int) -> list[Block]:
    """Show some rows of a frame."""
    shown, more = _shown(frame, most)
    return [table_of(shown), *([Notes([more])] if more else [])]


def _shown(frame: pl.DataFrame, most: int) -> tuple[pl.DataFrame, str | None]:
    """Return the first rows, or the longest for single events, and a note on the total number."""
    more = frame.height - most
    if more <= 0:
        return frame, None
    if frame.columns[0] == "event" and "duration_ns" in frame.columns:
        longest = frame.sort("duration_ns", "event", descending=[True, False], nulls_last=True)
        return longest.head(most), f"The {most} longest of {frame.height:,}."
    return frame.head(most), f"{count(more, 'more row')}."
