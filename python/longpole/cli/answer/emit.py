"""Writes answers to stdout as they come, in the format that was asked for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from longpole.cli.answer import exit_codes
from longpole.report.csv import csv_text
from longpole.report.document import Document
from longpole.report.html import page
from longpole.report.json import json_lines, json_text
from longpole.report.markdown import markdown
from longpole.report.text import text
from longpole.wording import escape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from longpole.cli.answer.problems import Problem
    from longpole.report.terminal import Terminal

__all__ = ["Answer", "ClosedPipeError", "emit", "failed"]

Answer = tuple[Document, int]
"""A document and the exit code that it stands for."""


class ClosedPipeError(Exception):
    """Nobody reads stdout any more, as after `| head`."""


def failed(schema: str, problem: Problem) -> Answer:
    """Answer that there is no answer, and tell the user on stderr."""
    problem.show()
    error = problem.to_dict()
    document = Document(schema=schema, input={"path": problem.path}, status="error", error=error)
    return document, problem.exit_code


def emit(answers: Iterable[Answer], form: str, terminal: Terminal) -> int:
    """Write answers; give the exit code, the gravest of them."""
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
        answer = _one(document, form, terminal, written)
        _write(answer)
        written += bool(answer)
    if form == "json":
        _write(json_text(kept))
    elif form == "html":
        _write(page(document.blocks() for document in kept))
    return exit_code


def _one(document: Document, form: str, terminal: Terminal, written: int) -> str:
    """Write one of several answers, with an empty line before it where people read."""
    if form == "jsonl":
        return json_lines(document)
    if document.error is not None:
        return ""
    if form == "csv":
        return csv_text(document, has_header=not written)
    blocks = document.blocks()
    answer = markdown(blocks) if form == "md" else text(blocks, terminal) + "\n"
    return ("\n" if written else "") + answer if blocks else ""


def _warn(document: Document) -> None:
    """Tell people what to know when using an answer; in JSON it is part of the answer."""
    path = document.input.get("path")
    where = f"{escape(path)}: " if path else ""
    for warned in document.warnings:
        hint = f"; {warned.hint}" if warned.hint else ""
        line = f"{warned.message}: {warned.effect}{hint}"
        sys.stderr.write(f"warning: {where}{escape(line)} [{warned.code}]\n")


def _write(answer: str) -> None:
    try:
        sys.stdout.write(answer)
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise ClosedPipeError from error
