"""The traces that a verb is asked about, and one document for each."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from longpole.cli.output import Document, Warned, emit
from longpole.cli.problems import Problem
from longpole.cli.progress import reading
from longpole.cli.terminal import Terminal
from longpole.errors import TraceError
from longpole.wording import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from longpole.cli.options import Options
    from longpole.trace import Trace

__all__ = ["NotInTraceError", "answer_each", "describe", "title", "warnings_of"]


class NotInTraceError(click.UsageError):
    """A part of a trace was asked for that it has not, though another trace may."""


def answer_each(
    paths: Sequence[str],
    options: Options,
    schema: str,
    answer: Callable[[str, Trace], Document],
) -> int:
    """Write what `answer` says of each trace; give the exit code.

    A trace that cannot be read does not keep the others from being answered.
    """

    def documents() -> Iterator[Document]:
        for path in paths:
            try:
                yield answer(path, read(path, options))
            except (TraceError, OSError, NotInTraceError) as error:
                if options.debug or (len(paths) == 1 and isinstance(error, NotInTraceError)):
                    raise
                yield Document.of_problem(schema, Problem.of(error).at(path))

    return emit(documents(), options.form, Terminal.of(sys.stdout, options.color))


def read(path: str, options: Options) -> Trace:
    """Read a trace from a path, or from stdin for `-`."""
    from longpole.trace import read_trace

    if path == "-" and sys.stdin.isatty():
        message = "nothing is piped into stdin; give a file, or `zcat trace.json.gz | longpole -`"
        raise click.UsageError(message)
    with reading(path, enabled=options.progress) as progress:
        source = sys.stdin.buffer if path == "-" else path
        try:
            return read_trace(source, args="ids", vocabulary=options.vocabulary, progress=progress)
        except ValueError as error:
            raise click.UsageError(str(error)) from error


def title(path: str) -> str:
    """Name an input for people."""
    return "stdin" if path == "-" else escape(path)


def describe(path: str, trace: Trace) -> dict[str, Any]:
    """Say what was read, for the envelope."""
    return {
        "path": path,
        "format": trace.format,
        "compression": trace.compression,
        "bytes": trace.n_bytes,
        "events": trace.n_events,
        "rank": trace.rank,
        "world_size": trace.world_size,
    }


def warnings_of(trace: Trace) -> list[Warned]:
    """Give what reading lost or altered, for the envelope."""
    severe = ("altered", "data_loss")
    return [
        Warned(row["code"], row["count"], row["sentence"], row["effect"])
        for row in trace.diagnostics.iter_rows(named=True)
        if row["severity"] in severe
    ]
