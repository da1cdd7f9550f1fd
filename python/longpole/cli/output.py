"""One answer in every format: text, JSON, JSON Lines, CSV or Markdown, on stdout.

A verb makes one `Document` an input and hands them to `emit`, which writes each as soon
as it is there. JSON stands in an envelope whose keys and order are stable; with several
inputs `json` is an array of envelopes, `jsonl` one a line.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from longpole.cli import exit_codes
from longpole.wording import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from longpole.cli.problems import Problem
    from longpole.cli.terminal import Terminal

__all__ = [
    "DATA_FORMATS",
    "FORMATS",
    "ClosedPipeError",
    "Document",
    "Record",
    "Warned",
    "cell",
    "emit",
    "markdown_cell",
    "markdown_table",
]

FORMATS: Final = ("text", "json", "jsonl", "csv", "md")
DATA_FORMATS: Final = ("json", "jsonl")  # of which warnings are a part

Record = dict[str, str | int | float | None]
Status = Literal["ok", "partial", "abstained", "error"]


class ClosedPipeError(Exception):
    """Nobody reads stdout any more, as after `| head`."""


@dataclass(frozen=True, slots=True)
class Warned:
    """Something to know when using an answer."""

    code: str
    count: int
    message: str
    effect: str
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What a verb answers about one input, `{}` where there is none.

    What a format does not need is not computed.
    """

    schema: str
    input: Mapping[str, Any]
    status: Status = "ok"
    scope: Mapping[str, Any] | None = None
    warnings: Sequence[Warned] = ()
    data: Mapping[str, Any] | None = None
    truncated: Mapping[str, Any] | None = None
    problem: Problem | None = None
    exit_code: int = exit_codes.OK
    text: Callable[[Terminal], str] = field(default=lambda _: "")
    markdown: Callable[[], str] = field(default=lambda: "")
    forms_with_warnings: Sequence[str] = FORMATS  # beside others they go to stderr
    records: Callable[[], list[Record]] = field(default=list)
    columns: Sequence[str] = ()  # of the records; needed where there may be none

    @classmethod
    def of_problem(cls, schema: str, problem: Problem) -> Document:
        """Answer that there is no answer."""
        return cls(
            schema=schema,
            input={"path": problem.path},
            status="error",
            problem=problem,
            exit_code=problem.exit_code,
        )

    def envelope(self) -> dict[str, Any]:
        """Give the answer as programs read it."""
        from importlib.metadata import version

        return {
            "schema": self.schema,
            "tool": {"name": "longpole", "version": version("longpole")},
            "inputs": [self.input] if self.input else [],
            "scope": self.scope,
            "status": self.status,
            "warnings": [_plain(warned) for warned in self.warnings],
            "data": self.data,
            "truncated": self.truncated,
            "error": None if self.problem is None else self.problem.to_dict(),
        }


def emit(documents: Iterable[Document], form: str, terminal: Terminal) -> int:
    """Write documents as they come; give the exit code, the gravest of them."""
    exit_code = exit_codes.OK
    written = 0
    kept = []
    for document in documents:
        if document.problem is not None:
            document.problem.show()
        if form not in document.forms_with_warnings:
            _warn(document)
        if form == "json":
            kept.append(document.envelope())
        else:
            answer = _WRITERS[form](document, terminal, written)
            _write(answer)
            written += bool(answer)
        exit_code = max(exit_code, document.exit_code)
    if form == "json":
        _write(_json(kept[0] if len(kept) == 1 else kept, indent=2))
    return exit_code


def _warn(document: Document) -> None:
    """Tell people what is to be known when using an answer; in JSON it is part of the answer."""
    path = document.input.get("path")
    where = f"{escape(path)}: " if path else ""
    for warned in document.warnings:
        hint = f"; {warned.hint}" if warned.hint else ""
        line = f"{warned.message}: {warned.effect}{hint}"
        sys.stderr.write(f"warning: {where}{escape(line)} [{warned.code}]\n")


def cell(text: str | None) -> str | None:
    """Make a text harmless in a cell: a spreadsheet would take it for a formula.

    Examples
    --------
    >>> cell("=cmd()"), cell("aten::mm")
    ("'=cmd()", 'aten::mm')
    """
    return f"'{text}" if text and text[0] in "=+-@\t\r\n\0" else text


def markdown_table(
    titles: Sequence[str], rows: Iterable[Sequence[str]], sides: Sequence[str] = ()
) -> list[str]:
    """Write a table in Markdown; `sides` says `left` or `right` for each column."""
    marks = ["--:" if side == "right" else ":--" for side in sides or ["left"] * len(titles)]
    lines = [titles, marks, *([markdown_cell(text) for text in row] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def markdown_cell(text: str) -> str:
    """Keep a text within its cell, and what is Markdown or HTML in it from acting."""
    escaped = escape(text).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{letter}" if letter in "|`*_[]\\" else letter for letter in escaped)


def _text(document: Document, terminal: Terminal, written: int) -> str:
    if document.problem is not None:
        return ""
    return ("\n" if written else "") + terminal.encodable(document.text(terminal))


def _markdown(document: Document, _terminal: Terminal, written: int) -> str:
    return "" if document.problem else ("\n" if written else "") + document.markdown()


def _json_line(document: Document, _terminal: Terminal, _written: int) -> str:
    return _json(document.envelope())


def _csv(document: Document, _terminal: Terminal, written: int) -> str:
    records = [] if document.problem else document.records()
    columns = list(records[0]) if records else document.columns
    if not columns:
        return ""
    table = io.StringIO()
    writer = csv.DictWriter(table, columns, lineterminator="\n")
    if not written:
        writer.writeheader()
    for record in records:
        writer.writerow({key: _csv_cell(value) for key, value in record.items()})
    return table.getvalue()


_WRITERS: Final[dict[str, Callable[[Document, Terminal, int], str]]] = {
    "text": _text,
    "md": _markdown,
    "jsonl": _json_line,
    "csv": _csv,
}


def _csv_cell(value: str | float | None) -> str | float | None:
    if isinstance(value, bool):
        return json.dumps(value)
    return cell(escape(value)) if isinstance(value, str) else value


def _json(value: object, indent: int | None = None) -> str:
    separators = None if indent else (",", ":")
    return json.dumps(value, indent=indent, separators=separators, allow_nan=False) + "\n"


def _plain(warned: Warned) -> dict[str, Any]:
    return {name: getattr(warned, name) for name in Warned.__slots__}


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise ClosedPipeError from error
