"""Finds the questions about a trace without a list: each file of `analyses` that answers one.

The file begins with "Table `NAME`: what it holds.", and its function NAME takes a trace and a
window, and returns a frame or data with `blocks()` and `records()`. The names of its other
parameters are those of command-line options. The function has the decorator `@shared_parameters`.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_origin

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from longpole.report.blocks import Block
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = [
    "answer_blocks",
    "answer_type",
    "arguments_of",
    "choices_of",
    "gives_frame",
    "question",
    "questions",
    "reads_memory_files",
]

_FIRST_LINE: Final = re.compile(r'"""Table `(?P<name>\w+)`: (?P<sentence>.+)\."""')
_MOST_ROWS: Final = 20


def questions() -> dict[str, str]:
    """Return the name and description of each question, without importing any."""
    first_lines = map(_first_line, Path(__file__).parent.glob("*.py"))
    found = filter(None, map(_FIRST_LINE.match, first_lines))
    titles = {match["name"]: match["sentence"] for match in found}
    return {name: f"{title[:1].upper()}{title[1:]}" for name, title in sorted(titles.items())}


def question(name: str) -> Callable[..., Any]:
    """Return the function that answers a question."""
    ask: Callable[..., Any] = getattr(import_module(f"longpole.analyses.{name}"), name)
    return ask


def answer_type(name: str) -> Any:
    """Return the type of a question's answer, from which its JSON Schema is made."""
    import inspect

    import polars as pl

    ask = question(name)
    names = {"pl": pl, **vars(import_module(ask.__module__))}
    return eval(inspect.signature(ask).return_annotation, names)  # noqa: S307 (it is our own)


def gives_frame(name: str) -> bool:
    """Whether the answer to a question is a frame rather than data with its own fields."""
    import polars as pl

    answer = answer_type(name)
    return answer is pl.DataFrame or get_origin(answer) is Annotated


def choices_of(name: str) -> frozenset[str]:
    """Return the options of a question besides a trace and a window."""
    import inspect

    _, *others = inspect.signature(question(name)).parameters
    return frozenset(others) - {"window"}


def reads_memory_files(name: str) -> bool:
    """Whether a question also accepts memory timelines and snapshots."""
    return "Trace | Allocations" in question(name).__annotations__.values()


def arguments_of(name: str) -> Literal["ids", "default"]:
    """Return which event arguments must be read for a question."""
    return "default" if question(name).__dict__["needs_arguments"] else "ids"


def answer_blocks(
    name: str, trace: Trace, window: Window | None = None, *, most: int = _MOST_ROWS
) -> Sequence[Block]:
    """Return the answer about a window as blocks; a frame has at most `most` rows."""
    answer = question(name)(trace, window)
    blocks: Sequence[Block] = (
        answer.blocks() if hasattr(answer, "blocks") else _frame_blocks(answer, most)
    )
    return blocks


def _first_line(file: Path) -> str:
    with file.open(encoding="utf-8") as lines:
        return lines.readline().rstrip()


def _frame_blocks(frame: pl.DataFrame, most: int) -> list[Block]:
    """Show some rows of a frame."""
    from longpole.report.blocks import Notes, Sentence
    from longpole.report.frames import table_of

    if frame.is_empty():
        return [Sentence("There is nothing to show.")]
    shown, more = _shown(frame, most)
    return [table_of(shown), *([Notes([more])] if more else [])]


def _shown(frame: pl.DataFrame, most: int) -> tuple[pl.DataFrame, str | None]:
    """Return the first rows, or the longest of single events, and the total number."""
    from longpole.wording import count

    more = frame.height - most
    if more <= 0:
        return frame, None
    if frame.columns[0] == "event" and "duration_ns" in frame.columns:
        longest = frame.sort("duration_ns", "event", descending=[True, False], nulls_last=True)
        return longest.head(most), f"The {most} longest of {frame.height:,}."
    return frame.head(most), f"{count(more, 'more row')}."
