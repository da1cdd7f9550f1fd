"""The ranks that a command is asked about, and how they are read."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from longpole.cli.answer.emit import failed
from longpole.cli.answer.problems import Problem
from longpole.errors import LongpoleError
from longpole.traces.engines import ENGINES, TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.cli.ask.options import Options
    from longpole.traces.engines import Engine
    from longpole.traces.trace_set import TraceSet

__all__ = ["engine_options", "joined_ranks", "rank_progress", "sources_argument"]

_PATH = click.Path()  # only so that shells complete names of files

sources_argument = click.argument(
    "sources", type=_PATH, nargs=-1, required=True, metavar="SOURCES..."
)
"""A directory, a glob pattern, or traces of ranks."""


def engine_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options of how ranks are read."""
    workers = click.option(
        "--workers",
        type=click.IntRange(min=1),
        help="How many traces to hold in memory at once.  [default: one for each CPU, at most 4]",
    )
    engine = click.option(
        "--engine",
        type=click.Choice(ENGINES),
        default="threads",
        help="Where to read the traces; outside threads, a crash loses one trace.  "
        "[default: threads]",
    )
    timeout = click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        default=TIMEOUT_S,
        help="With ray: stop waiting if no trace finishes for this long.  [default: 600]",
    )
    return workers(engine(timeout(command)))


def joined_ranks(
    sources: Sequence[str],
    options: Options,
    *,
    workers: int | None,
    engine: Engine,
    timeout_s: float,
    step_name: str | None,
    schema: str,
    answer: Callable[[TraceSet], Answer],
) -> Iterator[Answer]:
    """Read the ranks and give the answer, or why there is none."""
    from longpole.traces.joining import read_traces

    try:
        traces = read_traces(
            list(sources),
            workers=workers,
            engine=engine,
            timeout_s=timeout_s,
            step_name=step_name,
            vocabulary=options.vocabulary,
            progress=rank_progress(options, "reading"),
        )
        yield answer(traces)
    except (LongpoleError, OSError) as error:
        if options.debug:
            raise
        yield failed(schema, Problem.of(error).at(", ".join(sources)))
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def rank_progress(options: Options, doing: str) -> Callable[[int, int], object] | None:
    """Count the ranks that are done, on a terminal."""
    if not options.progress or not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        end = "\r\x1b[K" if done == total else ""
        sys.stderr.write(f"\r{doing} ranks: {done} of {total}{end}")
        sys.stderr.flush()

    return show
