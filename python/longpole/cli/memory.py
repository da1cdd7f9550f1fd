"""`longpole memory`: show how much memory was allocated at the most, and what it was for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from longpole.cli.answer.emit import emit, failed
from longpole.cli.answer.inputs import name_of
from longpole.cli.answer.problems import Problem
from longpole.cli.answer.windows import code_of
from longpole.cli.ask.analyses import answer_analysis
from longpole.cli.ask.options import Options, answers, shared_options
from longpole.cli.ask.rows import top_option, where_changes_option
from longpole.cli.ask.windows import Asked, stretch_options
from longpole.errors import TraceError
from longpole.report.blocks import Headline
from longpole.report.document import Document
from longpole.report.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.cli.answer.emit import Answer

__all__ = ["memory"]

_SCHEMA = "longpole.memory/1"


@click.command()
@answers("longpole.analyses.memory:Memory")
@click.argument(
    "files", type=click.Path(allow_dash=True), nargs=-1, required=True, metavar="FILE..."
)
@where_changes_option
@top_option
@stretch_options
@shared_options
def memory(
    *,
    files: Sequence[str],
    where: str | None,
    top: int,
    window: Asked,
    options: Options,
) -> int:
    """Show how much memory was allocated at the most, and what it was for.

    FILE is a trace (profile_memory=True), an Ascend profile, a raw memory timeline
    (export_memory_timeline("x.raw.json.gz")), or a memory snapshot written as JSON. Pickles are
    refused: opening one runs the code in it.

    \b
    Examples:
      longpole memory trace.json.gz --step 3
      longpole memory memory_timeline.raw.json.gz
    """
    kinds = {_is_memory_file(path) for path in files}
    if kinds == {False}:
        return answer_analysis(
            "memory",
            files,
            options,
            window=window,
            where=where,
            top=top,
        )
    if len(kinds) > 1:
        message = "give traces, or memory timelines and snapshots, not both"
        raise click.UsageError(message)
    if window.is_any and not window.whole:
        message = "a window is of a trace; memory timelines and snapshots are shown whole"
        raise click.UsageError(message)
    answers = _answers(files, where, top, debug=options.debug)
    return emit(answers, options.form, Terminal.of(sys.stdout, options.color))


def _is_memory_file(path: str) -> bool:
    """Look at the first bytes; what cannot be read is a trace that cannot be read."""
    from longpole.allocations import is_memory_file

    try:
        return path != "-" and is_memory_file(path)
    except OSError:
        return False


def _answers(paths: Sequence[str], where: str | None, top: int, *, debug: bool) -> Iterator[Answer]:
    for path in paths:
        try:
            yield _answer(path, where, top)
        except (TraceError, OSError) as error:
            if debug:
                raise
            yield failed(_SCHEMA, Problem.of(error).at(path))


def _answer(path: str, where: str | None, top: int) -> Answer:
    from longpole.allocations import read_memory
    from longpole.analyses.memory import memory as question

    recording = read_memory(path)
    try:
        result = question(recording, where=where, top=top)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    blocks = result.blocks()
    document = Document(
        schema=_SCHEMA,
        input={"path": path, "format": f"memory-{recording.source}"},
        data=result.to_dict(),
        blocks=lambda: [Headline(f"{name_of(path)}: memory {recording.source}"), *blocks],
        records=lambda: [{"path": path, **record} for record in result.records()],
    )
    return document, code_of(result.records(), blocks)
