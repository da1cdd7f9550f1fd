"""The ranks that a command is asked about, and how they are read."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from longpole.cli.answer.emit import failed
from longpole.cli.answer.problems import Problem
from longpole.errors import LongpoleError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.cli.ask.options import Options
    from longpole.traces.trace_set import TraceSet

__all__ = ["engine_options", "joined_ranks", "sources_argument"]

_PATH = click.Path()  # only so that shells complete names of files

sources_argument = click.argument(
    "sources", type=_PATH, nargs=-1, required=True, metavar="SOURCES..."
)
"""A directory, a glob pattern, or traces of ranks."""


def engine_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options of how ranks are read."""
    return click.option(
        "--workers",
        type=click.IntRange(min=1),
        help="How many traces to hold at once (default: one for each CPU, at most 4).",
    )(command)


def joined_ranks(
    sources: Sequence[str],
    options: Options,
    *,
    workers: int | None,
    step_name: str | None,
    schema: str,
    answer: Callable[[TraceSet], Answer],
) -> Iterator[Answer]:
    """Read the ranks and give the answer, or why there is none."""
    from longpole.traces.trace_set import read_traces

    try:
        traces = read_traces(
            list(sources),
            workers=workers,
            step_name=step_name,
            vocabulary=options.vocabulary,
            progress=_progress(enabled=options.progress),
        )
        yield answer(traces)
    except (LongpoleError, OSError) as error:
        if options.debug:
            raise
        yield failed(schema, Problem.of(error).at(", ".join(sources)))
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _progress(*, enabled: bool) -> Callable[[int, int], object] | None:
    """Count the ranks that were read, on a terminal."""
    if not enabled or not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        end = "\r\x1b[K" if done == total else ""
        sys.stderr.write(f"\rreading ranks: {done} of {total}{end}")
        sys.stderr.flush()

    return show
