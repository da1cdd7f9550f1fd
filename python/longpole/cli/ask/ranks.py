"""The ranks in a command's input, and how they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli.answer.live import Live, is_watched
from longpole.cli.answer.problems import usage_errors
from longpole.cli.ask.numbers import COUNT, timeout_option
from longpole.cli.ask.options import gather, vocabulary_option
from longpole.cli.ask.windows import step_name_option
from longpole.jobs.engines import ENGINES, TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.cli.ask.options import Options
    from longpole.jobs.trace_set import TraceSet

_PATH = click.Path(readable=False)  # only for the shell completion of file names

sources_argument = click.argument(
    "sources", type=_PATH, nargs=-1, required=True, metavar="SOURCES..."
)
"""A directory, a glob pattern, or traces of ranks."""


workers_option: Final = click.option(
    "--workers",
    type=COUNT,
    metavar="N",
    help="Number of traces to hold in memory at once.  [default: one for each CPU, at most 4]",
)


reading_options: Final = gather(
    "reading",
    {
        "step_name": step_name_option,
        "workers": workers_option,
        "engine": click.option(
            "--engine",
            type=click.Choice(ENGINES),
            default="threads",
            help="Where to read the traces; with ray, a crash loses only one trace.  "
            "[default: threads]",
        ),
        "timeout_s": timeout_option("a trace with ray, if no other finishes meanwhile", TIMEOUT_S),
        "vocabulary": vocabulary_option,
    },
    dict,
)
"""Add the options for reading ranks to a command, as its argument `reading`."""


def answer_ranks(
    sources: Sequence[str],
    options: Options,
    schema: str,
    answer: Callable[[TraceSet], Answer],
    reading: Mapping[str, Any],
) -> int:
    """Write the result of `answer` for the ranks; return the exit code."""
    from longpole.jobs.joining import read_traces

    @usage_errors()
    def ask() -> Answer:
        progress = rank_progress("reading")
        traces = read_traces(list(sources), progress=progress, **reading)
        return answer(traces)

    return options.emit(options.attempt(schema, ", ".join(sources), ask))


def rank_progress(doing: str) -> Callable[[int, int], object] | None:
    """Show the number of finished ranks on a terminal."""
    if not is_watched():
        return None
    live = Live()

    def show(done: int, total: int) -> None:
        live.show([f"{doing} ranks: {done} of {total}"])
        if done == total:
            live.clear()

    return show
