"""The tables behind the answers, each by its name."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.frames import json_rows, records_of
from longpole.cli.answer.inputs import describe, name_of, warnings_of
from longpole.cli.answer.list_of_tables import TABLE
from longpole.cli.answer.windows import exit_code_of, known_of
from longpole.report.blocks import Headline, Sentence
from longpole.report.document import DATA_FORMATS, Document
from longpole.report.frames import table_of
from longpole.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from longpole.cli.answer.emit import Answer
    from longpole.cli.answer.windows import Found
    from longpole.critical_path import CriticalPath
    from longpole.report.blocks import Block
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = [
    "Shown",
    "arguments_for",
    "known_of_window",
    "path_table",
    "question_table",
    "rows_of_path",
    "rows_of_question",
]

_SHOWN_ROWS: Final = 50


@dataclass(frozen=True, slots=True)
class Shown:
    """Which table was asked for, and which of its rows."""

    table: str
    where: str | None
    top: int | None
    sort: str | None = None


_OF_PATH: Final[dict[str, Callable[[CriticalPath, Trace], pl.DataFrame]]] = {
    "sync": lambda path, trace: _timed(path.sync_dependencies, trace),
    "segments": lambda path, _: path.segments,
    "slack": lambda path, trace: _named(path.slack, trace),
    "violations": lambda path, _: path.violations,
}


def arguments_for(table: str) -> Literal["ids", "default"]:
    """Tell which arguments of events a table needs."""
    module = import_module(f"longpole.analyses.{table}")
    return "default" if getattr(module, "NEEDS_ARGUMENTS", False) else "ids"


def path_table(path: str, trace: Trace, found: Found, *, shown: Shown) -> Answer:
    """Give a table about the critical path."""
    rows = rows_of_path(trace, found, shown)
    known = known_of(path, trace, found)
    return _document(shown, rows, found.title, known), exit_code_of(trace, found)


def question_table(path: str, trace: Trace, window: Window | None, *, shown: Shown) -> Answer:
    """Give the table that a question is answered with; without a window, about all of a trace."""
    rows = rows_of_question(trace, window, shown)
    title = "whole trace" if window is None else f"{window.name} ({window.reason})"
    # No row is an answer, too: that nothing is as the question or the condition says.
    return _document(shown, rows, title, known_of_window(path, trace, window)), exit_codes.OK


def rows_of_path(trace: Trace, found: Found, shown: Shown) -> pl.DataFrame:
    """Give the rows of a table about the critical path."""
    from longpole.selection import matching

    rows = _asked(lambda: matching(_OF_PATH[shown.table](found.path, trace), shown.where))
    return _sorted(rows, shown)


def rows_of_question(trace: Trace, window: Window | None, shown: Shown) -> pl.DataFrame:
    """Give the rows of the table that a question is answered with."""
    import polars as pl

    question: Callable[..., Any]
    question = getattr(import_module(f"longpole.analyses.{shown.table}"), shown.table)
    answer = _asked(lambda: question(trace, window, where=shown.where))
    if isinstance(answer, pl.DataFrame):
        return _sorted(answer, shown)
    return _sorted(pl.DataFrame(answer.records(), infer_schema_length=None), shown)


def _sorted(rows: pl.DataFrame, shown: Shown) -> pl.DataFrame:
    """Put rows into the order that was asked for."""
    from longpole.selection import sorted_by

    found: pl.DataFrame = _asked(lambda: sorted_by(rows, shown.sort))
    return found


def _asked(answer: Callable[[], Any]) -> Any:
    """Answer; what is wrong with the condition or column is an error of usage."""
    try:
        return answer()
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def known_of_window(path: str, trace: Trace, window: Window | None) -> dict[str, Any]:
    """Give what every document about the time of a window says; without one, of a trace."""
    scope = None
    if window is not None:
        scope = {
            "rank": trace.rank,
            "step": window.step,
            "window_ns": [window.start_ns, window.end_ns],
            "reason": window.reason,
            "window": window.name,
        }
    return {
        "input": describe(path, trace),
        "warnings": warnings_of(trace),
        "forms_with_warnings": DATA_FORMATS,
        "status": "partial" if trace.status == "recovered" else "ok",
        "scope": scope,
    }


def _document(shown: Shown, rows: pl.DataFrame, title: str, known: dict[str, Any]) -> Document:
    path = known["input"]["path"]
    kept = rows if shown.top is None else rows.head(shown.top)
    truncated = {"rows": {"shown": kept.height, "total": rows.height}}
    return Document(
        schema=TABLE,
        **known,
        data={"table": shown.table},
        truncated=truncated if kept.height < rows.height else None,
        json_rows=lambda: json_rows(kept),
        blocks=lambda: [
            Headline(f"{name_of(path)}: {shown.table}, {title}"),
            *_blocks(rows, shown.top or _SHOWN_ROWS),
        ],
        records=lambda: records_of(path, kept),
        columns=("path", *rows.columns),
    )


def _blocks(rows: pl.DataFrame, most: int) -> list[Block]:
    shown = table_of(rows.head(most))
    if rows.height <= most:
        return [shown]
    rest = f"The first {most} of {count(rows.height, 'row')}; --top N prints more, CSV all."
    return [shown, Sentence(rest)]


def _timed(waits: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """Give waits with the time of what waited, in the order in which it began."""
    times = trace.events.select("start_ns", "duration_ns", target="event")
    return waits.join(times, on="target").sort("start_ns", "target", "source")


def _named(slack: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """Give the slack of events with what they are, the least first; what has none stands last."""
    names = trace.events.select("event", "kind", "name", "start_ns", "duration_ns")
    return slack.join(names, on="event").sort("slack_ns", "event", nulls_last=True)
