"""`longpole merge`: write the ranks of a run as one aligned trace for ui.perfetto.dev."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from longpole.cli.answer.usage import require
from longpole.cli.ask.options import Options, answers, output_options, shared_options
from longpole.cli.ask.ranks import (
    answer_ranks,
    rank_progress,
    reading_options,
    sources_argument,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["merge"]


@click.command()
@answers("longpole.cli.answer.merge:MergedFile")
@sources_argument
@output_options("The file to write: .pftrace, or .zip for a compressed one.")
@reading_options
@shared_options
def merge(
    *,
    sources: Sequence[str],
    output: Path,
    force: bool,
    reading: dict[str, Any],
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
    from longpole.cli.answer.merge import MERGE, merge_answer

    is_known = output.suffix in {".pftrace", ".zip"}
    require(is_known, "the name of the output must end in .pftrace or .zip")
    progress = rank_progress(options, "writing")
    answer = partial(merge_answer, sources, output=output, force=force, progress=progress)
    return answer_ranks(sources, options, MERGE, answer, reading)
