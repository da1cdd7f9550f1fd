"""Which questions there are, found without a list: each file of `analyses` that answers one.

A question is a function with the name of its file that takes a trace and a window, and gives
a frame or an answer with `blocks()`.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from longpole.report.blocks import Notes, Sentence
from longpole.report.frames import table_of
from longpole.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.report.blocks import Block
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["answer_blocks", "questions"]

_TITLE: Final = re.compile(r"^(?:Table `\w+`: )?(?P<title>.+?)\.?$")
_MOST_ROWS: Final = 20
_OWN: Final = ("questions", "summary")


def questions() -> dict[str, str]:
    """Give the name of each question and what it asks, in the order of their names."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    found = {name: _question(name) for name in names if name not in _OWN and name[0] != "_"}
    return {name: _title(name) for name, ask in found.items() if ask is not None}


def answer_blocks(
    name: str, trace: Trace, window: Window | None = None, *, most: int = _MOST_ROWS
) -> Sequence[Block]:
    """Answer a question about a window as blocks; a frame is shown by so many rows at the most."""
    ask = _question(name)
    if ask is None:
        message = f"there is no question {name!r}"
        raise ValueError(message)
    answer = ask(trace, window)
    if isinstance(answer, pl.DataFrame):
        return _frame_blocks(answer, most)
    blocks: Sequence[Block] = answer.blocks()
    return blocks


def _question(name: str) -> Callable[..., Any] | None:
    """Give the function of a file, if it answers with a frame or with blocks."""
    module = import_module(f"longpole.analyses.{name}")
    ask = getattr(module, name, None)
    if not inspect.isfunction(ask):
        return None
    signature = inspect.signature(ask)
    required = [
        each.name
        for each in signature.parameters.values()
        if each.default is inspect.Parameter.empty
    ]
    if required != ["trace"] or "window" not in signature.parameters:
        return None
    returns = str(signature.return_annotation).split("[")[0]
    is_answer = hasattr(getattr(module, returns, None), "blocks")
    return ask if returns == "pl.DataFrame" or is_answer else None


def _title(name: str) -> str:
    document = import_module(f"longpole.analyses.{name}").__doc__ or name
    found = _TITLE.match(document.splitlines()[0])
    title = found["title"] if found else name
    return title[:1].upper() + title[1:]


def _frame_blocks(frame: pl.DataFrame, most: int) -> list[Block]:
    """Show some rows of a frame."""
    if frame.is_empty():
        return [Sentence("There is nothing to show.")]
    shown, more = _shown(frame, most)
    return [table_of(shown), *([Notes([more])] if more else [])]


def _shown(frame: pl.DataFrame, most: int) -> tuple[pl.DataFrame, str | None]:
    """Take the first rows, of single events the longest, and say how many there are."""
    more = frame.height - most
    if more <= 0:
        return frame, None
    if frame.columns[0] == "event" and "duration_ns" in frame.columns:
        longest = frame.sort("duration_ns", "event", descending=[True, False], nulls_last=True)
        return longest.head(most), f"The {most} longest of {frame.height:,}."
    return frame.head(most), f"{count(more, 'more row')}."
