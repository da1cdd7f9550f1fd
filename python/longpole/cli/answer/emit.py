"""Writes answers to stdout as they arrive, in the requested format."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from longpole.cli.answer import exit_codes
from longpole.report.document import Document
from longpole.words.wording import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.cli.answer.problems import Problem
    from longpole.report.blocks import Block
    from longpole.report.text import Terminal

_WIDE: Final = 200
_MORE: Final = "For more, set COLUMNS=200; for all, see --json."
_MORE_OF_WIDE: Final = "For all, with names as recorded, see --json."

Answer = tuple[Document, int]
"""A document and its exit code."""


class ClosedPipeError(Exception):
    """The reader of stdout has closed it, as after `| head`."""


def failed(schema: str, problem: Problem) -> Answer:
    """Build an error document, and print the problem to stderr."""
    problem.show()
    error = problem.to_dict()
    document = Document(schema=schema, input={"path": problem.path}, status="error", error=error)
    return document, problem.exit_code


def emit(answers: Iterable[Answer], form: str, terminal: Terminal) -> int:
    """Write answers; return the most severe exit code."""
    exit_code = exit_codes.OK
    written = 0
    kept = []
    for document, code in answers:
        exit_code = max(exit_code, code)
        if form not in document.forms_with_warnings:
            _warn(document)
        if form in {"json", "html"}:
            kept.append(document)
            continue
        written += _write(_one(document, form, terminal, written))
    _write(_all(kept, form))
    return exit_code


def _all(documents: Sequence[Document], form: str) -> Iterable[str]:
    """Yield the document that contains all answers: an array or a page."""
    if form == "json":
        from longpole.report.json import json_chunks

        return json_chunks(documents)
    return [_page(documents)] if form == "html" else []


def _page(documents: Sequence[Document]) -> str:
    """Return answers as one page; their sections have no extra headline."""
    from longpole.report.page import page_text
    from longpole.report.sections import Page, Section

    sections: list[Section] = []
    facts: list[str] = []
    for number, document in enumerate(documents):
        if document.sections is None:
            sections.append(Section(f"answer-{number}", "", document.blocks()))
        else:
            sections += document.sections()
            facts += document.facts() if document.facts else [str(document.input["path"])]
    words = sorted({document.schema.rpartition("/")[0].replace(".", " ") for document in documents})
    return page_text(Page(", ".join(words), facts, sections))


def _one(document: Document, form: str, terminal: Terminal, written: int) -> Iterable[str]:
    """Yield one of several answers, after an empty line in text formats."""
    # Each format is imported on use: `--help` needs none.
    if form == "jsonl":
        from longpole.report.json import json_lines

        return json_lines(document)
    if document.error is not None:
        return []
    if form == "csv":
        from longpole.report.csv import csv_chunks

        return csv_chunks(document, has_header=not written)
    answer = _for_people(document.blocks(), form, terminal, written)
    is_first = bool(answer) and not written and form == "text" and not document.is_one_screen
    return [answer + _hint(answer, terminal) if is_first else answer]


def _for_people(blocks: Sequence[Block], form: str, terminal: Terminal, written: int) -> str:
    from longpole.report.markdown import markdown
    from longpole.report.text import text

    answer = markdown(blocks) if form == "md" else text(blocks, terminal) + "\n"
    return ("\n" if written else "") + answer if blocks else ""


def _hint(answer: str, terminal: Terminal) -> str:
    """Return how to show everything, if the first answer shortens names or leaves columns out."""
    from longpole.report.text import NO_ROOM

    is_whole = terminal.encodable("…") not in answer and NO_ROOM not in answer
    more = _MORE if terminal.width < _WIDE else _MORE_OF_WIDE
    return "" if is_whole else terminal.styled(f"\n  {more}", "dim") + "\n"


def _warn(document: Document) -> None:
    """Print warnings about an answer; in JSON they are part of the answer."""
    path = document.input.get("path")
    where = f"{escape(path)}: " if path else ""
    for warned in document.warnings:
        hint = f"; {warned.hint}" if warned.hint else ""
        line = f"{warned.message}: {warned.effect}{hint}"
        sys.stderr.write(f"warning: {where}{escape(line)} [{warned.code}]\n")


def _write(chunks: Iterable[str]) -> bool:
    """Write the parts of an answer as they are created; return whether there were any."""
    length = 0
    try:
        for chunk in chunks:
            sys.stdout.write(chunk)
            length += len(chunk)
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise ClosedPipeError from error
    return length > 0
