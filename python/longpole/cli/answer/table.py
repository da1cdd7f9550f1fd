"""The tables behind the answers, each by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.cli.answer.frames import records_of, table_of
from longpole.cli.answer.inputs import name_of
from longpole.cli.answer.windows import exit_code_of, known_of
from longpole.report.blocks import Headline
from longpole.report.document import Document

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from longpole.cli.answer.emit import Answer
    from longpole.cli.answer.windows import Found
    from longpole.critical_path import CriticalPath
    from longpole.trace import Trace

__all__ = ["TABLE", "TABLES", "table_answer"]

TABLE: Final = "longpole.table/1"
TABLES: Final[dict[str, Callable[[CriticalPath, Trace], pl.DataFrame]]] = {
    "sync": lambda path, trace: _timed(path.sync_dependencies, trace),
    "segments": lambda path, _: path.segments,
    "slack": lambda path, trace: _named(path.slack, trace),
    "violations": lambda path, _: path.violations,
}


def table_answer(path: str, trace: Trace, found: Found, *, table: str) -> Answer:
    """Give one table."""
    rows = TABLES[table](found.path, trace)
    document = Document(
        schema=TABLE,
        **known_of(path, trace, found),
        data={"table": table, "rows": rows.to_dicts()},
        blocks=lambda: [
            Headline(f"{name_of(path)}: {table}, {found.title}"),
            table_of(rows),
        ],
        records=lambda: records_of(path, rows),
        columns=("path", *rows.columns),
    )
    return document, exit_code_of(found)


def _timed(waits: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """Give waits with the time of what waited, in the order in which it began."""
    times = trace.events.select("start_ns", "duration_ns", target="event")
    return waits.join(times, on="target").sort("start_ns", "target", "source")


def _named(slack: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """Give the slack of events with what they are, the least first; what has none stands last."""
    names = trace.events.select("event", "kind", "name", "start_ns", "duration_ns")
    return slack.join(names, on="event").sort("slack_ns", "event", nulls_last=True)
