"""`longpole ranks`: show which rank makes the others wait, why, and how much a fix saves."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from longpole.cli.ask.dumps import are_dumps, joined_dumps
from longpole.cli.ask.options import Options, answers, shared_options
from longpole.cli.ask.ranks import engine_options, joined_ranks, sources_argument
from longpole.report.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.traces.engines import Engine

__all__ = ["ranks"]


@click.command()
@answers("longpole.analyses.ranks:RanksData")
@sources_argument
@click.option("--step", type=int, help="Show the path of one step, not of the whole run.")
@click.option("--step-name", metavar="REGEX", help="Annotations that mark steps.")
@click.option("--all", "all_ranks", is_flag=True, help="Show every rank.")
@engine_options
@shared_options
def ranks(
    *,
    sources: Sequence[str],
    step: int | None,
    step_name: str | None,
    all_ranks: bool,
    workers: int | None,
    engine: Engine,
    timeout: float,
    options: Options,
) -> int:
    """Show which rank makes the others wait, why, and how much a fix saves.

    SOURCES are a directory, a glob pattern, or the traces of the ranks. longpole aligns their
    clocks, matches their collectives, and finds one critical path across all ranks.

    SOURCES can also be flight recorder dumps of PyTorch as JSON. The answer is then which
    collective hangs, which ranks have not called it, and which ranks wait in it.

    \b
    Examples:
      longpole ranks traces/
      longpole ranks traces/ --step 3 --json
      longpole ranks dumps/
    """
    from longpole.cli.answer.dumps import dumps_answer
    from longpole.cli.answer.emit import emit
    from longpole.cli.answer.ranks import ranks_answer

    if are_dumps(sources):
        answers = joined_dumps(sources, options, answer=partial(dumps_answer, sources))
        return emit(answers, options.form, Terminal.of(sys.stdout, options.color))
    answers = joined_ranks(
        sources,
        options,
        workers=workers,
        engine=engine,
        timeout_s=timeout,
        step_name=step_name,
        schema="longpole.ranks/1",
        answer=lambda traces: ranks_answer(sources, traces, step, all_ranks=all_ranks),
    )
    return emit(answers, options.form, Terminal.of(sys.stdout, options.color))
