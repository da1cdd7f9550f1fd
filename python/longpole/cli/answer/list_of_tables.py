"""Which tables there are, each with a sentence, found without importing them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Final

from longpole.cli.answer import exit_codes
from longpole.cli.answer.emit import emit
from longpole.data import Row
from longpole.report.blocks import Column, Headline, Table
from longpole.report.document import Document
from longpole.report.terminal import Terminal

__all__ = ["PATH_TABLES", "TABLE", "WHOLE_TABLES", "TableRows", "list_of_tables", "tables"]

TABLE: Final = "longpole.table/1"
PATH_TABLES: Final = {
    "segments": "the critical path, segment by segment",
    "slack": "how late each event may end before the window's end moves, the least first",
    "sync": "who waited for whom on a device",
    "violations": "dependencies that would lead back in time",
}
WHOLE_TABLES: Final = frozenset(("steps",))
"""Those that list all of a trace where no window is asked for."""
_FIRST_LINE: Final = re.compile(r'"""Table `(?P<name>\w+)`: (?P<sentence>.+)\."""')


class TableRows(Row):
    """A table; without its name, the list of tables."""

    table: str | None
    rows: list[dict[str, Any]]


def tables() -> dict[str, str]:
    """Give each table with what it holds: those of the path, and each file of `analyses`.

    A file has one where it begins with "Table `NAME`: ..."; its function of that name makes
    the table.
    """
    folder = Path(__file__).parents[2] / "analyses"
    first_lines = (_first_line(file) for file in folder.glob("*.py"))
    found = filter(None, map(_FIRST_LINE.match, first_lines))
    questions = {match["name"]: match["sentence"] for match in found}
    return dict(sorted((questions | PATH_TABLES).items()))


def list_of_tables(path: str, form: str, color: str) -> int:
    """Print the names of the tables with a sentence each."""
    rows = [{"table": name, "sentence": sentence} for name, sentence in tables().items()]
    document = Document(
        schema=TABLE,
        input={"path": path},
        data={"table": None, "rows": rows},
        blocks=lambda: [
            Headline("tables: longpole table TRACE NAME"),
            Table((Column("name"), Column("what it holds")), [list(row.values()) for row in rows]),
        ],
        records=lambda: [dict(row) for row in rows],
    )
    return emit([(document, exit_codes.OK)], form, Terminal.of(sys.stdout, color))


def _first_line(file: Path) -> str:
    with file.open(encoding="utf-8") as lines:
        return lines.readline().rstrip()
