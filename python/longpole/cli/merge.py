"""`longpole merge`: write the ranks of a run as one aligned trace for ui.perfetto.dev."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longpole.cli.ask.options import Options, answers, shared_options
from longpole.cli.ask.ranks import (
    engine_options,
    joined_ranks,
    rank_progress,
    sources_argument,
)
from longpole.report.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.traces.engines import Engine

__all__ = ["merge"]


@click.command()
@answers("longpole.cli.answer.merge:MergedFile")
@sources_argument
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write: .pftrace, or .zip for a compressed one.",
)
@click.option("-f", "--force", is_flag=True, help="Replace the file if it exists.")
@click.option("--step-name", metavar="REGEX", help="Annotations that mark steps.")
@engine_options
@shared_options
def merge(
    *,
    sources: Sequence[str],
    output: Path,
    force: bool,
    step_name: str | None,
    workers: int | None,
    engine: Engine,
    timeout: float,
    options: Options,
) -> int:
    """Write the ranks of a run as one aligned trace for ui.perfetto.dev.

    SOURCES are a directory, a glob pattern, or the traces of the ranks. All times are on the
    clock of the first rank. Arrows show the critical path across ranks.

    \b
    Examples:
      longpole merge traces/ -o run.pftrace
      longpole merge rank*.json.gz -o run.zip
    """
    from longpole.cli.answer.emit import emit
    from longpole.cli.answer.merge import MERGE, merge_answer

    if output.suffix not in {".pftrace", ".zip"}:
        message = "the name of the output must end in .pftrace or .zip"
        raise click.UsageError(message)
    write = partial(merge_answer, sources, output=output, force=force)
    answers = joined_ranks(
        sources,
        options,
        workers=workers,
        engine=engine,
        timeout_s=timeout,
        step_name=step_name,
        schema=MERGE,
        answer=partial(write, progress=rank_progress(options, "writing")),
    )
    return emit(answers, options.form, Terminal.of(sys.stdout, options.color))
