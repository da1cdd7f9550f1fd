"""The tables of a trace, by the questions they answer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import json_rows, name_of, records_of
from longpole.cli.answer.problems import usage_errors
from longpole.cli.answer.windows import (
    code_of,
    exit_code_of,
    known_of,
    known_of_trace,
    known_of_window,
)
from longpole.report.blocks import Column, Headline, Sentence, Table
from longpole.report.document import Abstention, Document, table_of
from longpole.tables.catalogue import (
    MOST_ROWS,
    choices_of,
    question,
    reads_memory_files,
    words_of,
)
from longpole.tables.legends import legend
from longpole.tables.questions import TABLES
from longpole.words.data import Row, plain
from longpole.words.recording import options_for
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import polars as pl

    from longpole.answer import Verdict
    from longpole.cli.answer.emit import Answer
    from longpole.cli.answer.windows import Found
    from longpole.engine.windows import Window
    from longpole.remedies.sides import Side
    from longpole.report.blocks import Block
    from longpole.trace.allocations import Allocations
    from longpole.trace.trace import Trace

TABLE: Final = "longpole.table/1"
WHOLE_TABLES: Final = frozenset(("steps",))
"""Tables that list the whole trace without a window."""
_OF_ASCEND: Final = frozenset(("ascend_overlap", "collective_waits", "communication_links"))
_OF_SIDES: Final[Mapping[Side, str]] = {
    "kernels": "Kernels",
    "host": "Host",
    "communication": "Communication",
    "copies": "Memory and copies",
    "waits": "Host",
}


class TableData(Row):
    """A table; without a name, the list of tables.

    Each entry of the list has its `table`, its contents (`sentence`), and the question it answers
    (`group`). Fields of a table other than its rows are further keys.
    """

    table: str | None
    by: str | None
    """The kind of rows; null if the table has one kind."""
    rows: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Shown:
    """The requested table, its rows, and its other options."""

    table: str
    where: str | None
    top: int | None
    sort: str | None = None
    choices: Mapping[str, object] = field(default_factory=dict)
    by: str | None = None
    """The requested kind of rows; None for the default."""

    @property
    def title(self) -> str:
        """The table as a phrase."""
        return self.table if self.by is None else f"{self.table} by {self.by}"


def tables() -> dict[str, str]:
    """Return the description of each table, in the order of the groups."""
    return {name: sentence for group in TABLES.values() for name, sentence in group.items()}


def groups_for(sides: Sequence[Side]) -> list[str]:
    """Sort the groups of tables: first those about what limits the program.

    Examples
    --------
    >>> groups_for(["host"])[:3]
    ['Where did the step go', 'Host', 'Kernels']
    """
    first, *_ = TABLES
    return [*dict.fromkeys([first, *(_OF_SIDES[side] for side in sides), *TABLES])]


def listed_tables(
    path: str | None,
    trace: Trace | None = None,
    verdict: Verdict | None = None,
    *,
    of_memory: bool = False,
) -> Answer:
    """List the tables by the questions they answer, first those about what limits the trace.

    Of a memory timeline or snapshot, list only the tables that can be read from it. Tables of
    Ascend profiles are left out for traces of another vendor.
    """
    rows = [
        {
            "table": name,
            "sentence": sentence,
            "group": group,
            "by": ", ".join(words_of(name)) or None,
        }
        for group in groups_for(verdict.sides if verdict else ())
        for name, sentence in TABLES[group].items()
        if not of_memory or reads_memory_files(name)
        if trace is None or name not in _OF_ASCEND or _may_be_ascend(trace)
    ]
    document = Document(
        schema=TABLE,
        **(known_of_trace(path, trace) if path and trace else {"input": {"path": path}}),
        data=TableData(table=None, by=None, rows=rows),
        blocks=lambda: _list_blocks(path, rows, verdict),
        records=lambda: [dict(row) for row in rows],
    )
    return document, exit_codes.OK


def _may_be_ascend(trace: Trace) -> bool:
    return options_for(trace.core).vendor in {None, "Huawei"}


def _list_blocks(
    path: str | None, rows: Sequence[Mapping[str, str | None]], verdict: Verdict | None
) -> list[Block]:
    """Show a table of tables for each group."""
    blocks: list[Block] = [Headline(f"tables: longpole {path or 'TRACE'} NAME")]
    blocks += [Sentence(verdict.sentence)] if verdict else []
    width = max(len(str(word)) for row in rows for word in (row["table"], row["group"]))
    for group, alike in groupby(rows, key=itemgetter("group")):
        cells = [(str(row["table"]).ljust(width), row["sentence"], row["by"]) for row in alike]
        blocks.append(Table((Column(group), Column(""), Column("--by")), cells))
    return blocks


def path_table(path: str, trace: Trace, found: Found, *, shown: Shown) -> Answer:
    """Return a table about the critical path."""
    rows = rows_of_path(trace, found, shown)
    verdict = found.verdict
    known = known_of(path, trace, found, verdict)
    why = partial(_why_empty, shown, trace, found)
    return _of_rows(shown, rows, found.title, known, why=why), exit_code_of(verdict)


def question_table(
    path: str, trace: Trace, window: Window | None = None, *, shown: Shown
) -> Answer:
    """Return the table that answers a question; without a window, about the whole trace."""
    title = "whole trace" if window is None else window.title
    known = known_of_window(path, trace, window)
    notes: list[Block] = []
    if shown.table == "queue" and window:
        notes += _uncounted(trace, window)
    why = partial(_why_empty, shown, trace, window)
    answer = _answer_of(trace, window, shown)
    notes += _impossible(answer, shown, trace)
    return _answered(answer, shown, title, known, why=why, notes=notes)


def memory_table(path: str, recording: Allocations, *, shown: Shown) -> Answer:
    """Return a table about a memory timeline or snapshot."""
    source = f"memory {recording.source}"
    known = {"input": {"path": path, "format": source.replace(" ", "-")}}
    why = partial(_why_empty, shown, recording)
    return _answered(_answer_of(recording, None, shown), shown, source, known, why=why)


@usage_errors()
def rows_of_path(trace: Trace, found: Found, shown: Shown) -> pl.DataFrame:
    """Return the rows of a table about the critical path."""
    path = {"critical_path": found.path}
    shown = replace(shown, choices={**shown.choices, **path})
    return _sorted(_answer_of(trace, None, shown), shown)


def rows_of_question(trace: Trace, window: Window | None, shown: Shown) -> pl.DataFrame:
    """Return the rows of the table that answers a question."""
    import polars as pl

    answer = _answer_of(trace, window, shown)
    if isinstance(answer, pl.DataFrame):
        return _sorted(answer, shown)
    return _sorted(pl.DataFrame(answer.records(), infer_schema_length=None), shown)


@usage_errors()
def _answer_of(recording: Trace | Allocations, window: Window | None, shown: Shown) -> Any:
    """Answer a question with its options; `top` is passed only if it was given."""
    given = {"where": shown.where, "sort": shown.sort, **shown.choices}
    given |= {} if shown.top is None else {"top": shown.top}
    accepted = choices_of(shown.table, shown.by)
    chosen = {name: value for name, value in given.items() if name in accepted}
    chosen |= {} if shown.by is None else {"by": shown.by}
    return question(shown.table)(recording, window, **chosen)


def _uncounted(trace: Trace, window: Window) -> list[Block]:
    """Warn that queues lack activities whose launch is not recorded."""
    n_work, n_unlinked = trace.core.unlinked(window.start_ns, window.end_ns)
    if not n_unlinked:
        return []
    told = f"{n_unlinked:,} of {count(n_work, 'GPU activity', 'GPU activities')}"
    return [
        Sentence(
            f"Not counted: {told}, which are not linked to a launching call. Queues may have been "
            "longer: launches that waited for room are in the table sync, as queue_full."
        )
    ]


def _answered(
    answer: Any,
    shown: Shown,
    title: str,
    known: dict[str, Any],
    *,
    why: Callable[[], str],
    notes: Sequence[Block] = (),
) -> Answer:
    """Show a frame as its rows, and other data as its blocks."""
    import polars as pl

    if isinstance(answer, pl.DataFrame):
        # An empty table is an answer too: nothing matches the question or the condition.
        return _of_rows(
            shown, _sorted(answer, shown), title, known, why=why, notes=notes
        ), exit_codes.OK
    blocks, records = answer.blocks(), answer.records()
    path = known["input"]["path"]
    code = code_of(records, blocks)
    if code and shown.where is not None:
        blocks = [Sentence(why())]
    data, truncated = _first_rows(plain(answer), shown.top)
    document = Document(
        schema=TABLE,
        **known,
        abstains_because=[Abstention("no_rows", title)] if code else [],
        data={"table": shown.table, "by": _by(shown), **data},
        truncated=truncated,
        blocks=lambda: [Headline(f"{name_of(path)}: {shown.title}, {title}"), *blocks, *notes],
        records=lambda: [{"path": path, **record} for record in records[: shown.top]],
    )
    return document, code


def _first_rows(
    data: Mapping[str, Any], top: int | None
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Keep the first rows of each list of an answer, and return how many there were."""
    lists = {name: rows for name, rows in data.items() if isinstance(rows, list)}
    cut = {name: rows for name, rows in lists.items() if top is not None and len(rows) > top}
    truncated = {name: {"shown": top, "total": len(rows)} for name, rows in cut.items()}
    return {**data, **{name: rows[:top] for name, rows in cut.items()}}, truncated or None


def _by(shown: Shown) -> str | None:
    return shown.by or next(iter(words_of(shown.table)), None)


@usage_errors()
def _sorted(rows: pl.DataFrame, shown: Shown) -> pl.DataFrame:
    """Sort rows as requested."""
    from longpole.rows.selection import sorted_by

    titles = [column.title for column in table_of(rows.head(0)).columns]
    return sorted_by(rows, shown.sort, titles)


def _of_rows(
    shown: Shown,
    rows: pl.DataFrame,
    title: str,
    known: dict[str, Any],
    *,
    why: Callable[[], str],
    notes: Sequence[Block] = (),
) -> Document:
    """Return a document of rows; `why` returns the reason if there are none."""
    path = known["input"]["path"]
    kept = rows if shown.top is None else rows.head(shown.top)
    truncated = {"rows": {"shown": kept.height, "total": rows.height}}
    return Document(
        schema=TABLE,
        **known,
        data={"table": shown.table, "by": _by(shown)},
        truncated=truncated if kept.height < rows.height else None,
        json_rows=lambda: json_rows(kept),
        blocks=lambda: [
            Headline(f"{name_of(path)}: {shown.title}, {title}"),
            *_blocks(rows, shown, why),
            *notes,
        ],
        records=lambda: records_of(path, kept),
        columns=("path", *rows.columns),
    )


def _blocks(rows: pl.DataFrame, shown: Shown, why: Callable[[], str]) -> list[Block]:
    if rows.is_empty():
        return [Sentence(why())]
    most = shown.top or MOST_ROWS
    notes = map(Sentence, legend(shown.table, rows.head(most), shown.by))
    blocks: list[Block] = [table_of(rows, shown.sort, most=most), *notes]
    if rows.height <= most:
        return blocks
    of_all = f"The first {most} of {count(rows.height, 'row')}"
    rest = f"{of_all}; --top N shows more, --format csv all of them."
    return [*blocks, Sentence(rest)]


def _impossible(answer: Any, shown: Shown, trace: Trace) -> list[Block]:
    """Return sentences about figures that a device cannot reach."""
    import polars as pl

    from longpole.tables.impossible_values import impossible_values

    rows = answer if isinstance(answer, pl.DataFrame) else None
    if rows is not None and rows.is_empty():
        return []
    return [Sentence(told) for told in impossible_values(shown.table, trace, shown.by, rows)]


def _why_empty(
    shown: Shown, recording: Trace | Allocations, about: Window | Found | None = None
) -> str:
    """Return why a table about a window, or else the whole recording, has no rows."""
    from longpole.tables.empty_tables import why_empty, why_unmatched

    if shown.where is not None:
        return why_unmatched(shown.where, recording)
    is_part = about is not None and about.is_part
    return why_empty(shown.table, recording, shown.by, is_part=is_part)
