"""`longpole ranks`: show which rank makes the others wait, why, and how much a fix saves."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from longpole.cli.answer.usage import require
from longpole.cli.ask.dumps import answer_dumps, are_dumps
from longpole.cli.ask.options import Options, answers, shared_options
from longpole.cli.ask.profiler import DURATION
from longpole.cli.ask.ranks import answer_ranks, reading_options, sources_argument
from longpole.cli.ask.windows import step_option

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["ranks"]


@click.command()
@answers("longpole.analyses.ranks:RanksData")
@sources_argument
@step_option("the whole run")
@click.option("--all", "all_ranks", is_flag=True, help="Show every rank.")
@click.option(
    "--step-time",
    "step_time_ns",
    type=DURATION,
    metavar="TIME",
    help="Time of a step without the profiler, such as 43ms.",
)
@reading_options
@shared_options
def ranks(
    *,
    sources: Sequence[str],
    step: int | None,
    all_ranks: bool,
    step_time_ns: int | None,
    reading: dict[str, Any],
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
    from longpole.cli.answer.dumps import DUMPS, dumps_answer
    from longpole.cli.answer.ranks import RANKS, ranks_answer

    if are_dumps(sources):
        require(step_time_ns is None, "--step-time is about traces, not about dumps")
        return answer_dumps(sources, options, DUMPS, partial(dumps_answer, sources))
    answer = partial(
        ranks_answer, sources, step=step, all_ranks=all_ranks, step_time_ns=step_time_ns
    )
    return answer_ranks(sources, options, RANKS, answer, reading)
