"""The traces that a command is asked about, and one answer for each."""

from __future__ import annotations

import errno
import sys
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from longpole.cli.answer.emit import emit, failed
from longpole.cli.answer.problems import Problem
from longpole.cli.answer.progress import reading
from longpole.errors import TraceError, WindowError
from longpole.report.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.cli.ask.options import Options
    from longpole.trace import Trace

__all__ = ["answer_each", "named_traces", "trace_argument", "traces_argument"]

_FILE = click.Path(allow_dash=True)  # only so that shells complete names of files

trace_argument = click.argument("trace", type=_FILE, metavar="TRACE")
"""One trace; `-` is stdin."""

traces_argument = click.argument("traces", type=_FILE, nargs=-1, required=True, metavar="TRACE...")
"""One trace or more; `-` is stdin."""


def answer_each(
    paths: Sequence[str],
    options: Options,
    schema: str,
    answer: Callable[[str, Trace], Answer],
    *,
    arguments: Literal["ids", "default"] = "ids",
) -> int:
    """Write what `answer` says of each trace, read with some `arguments`; give the exit code.

    A trace that cannot be read, or has no such window, does not keep the others from
    being answered.
    """

    def answers() -> Iterator[Answer]:
        for path in paths:
            try:
                yield answer(path, _read(path, options, arguments))
            except (TraceError, WindowError, OSError) as error:
                if options.debug:
                    raise
                yield failed(schema, Problem.of(error).at(path))

    return emit(answers(), options.form, Terminal.of(sys.stdout, options.color))


def named_traces(
    paths: Sequence[str], options: Options, *, args: Literal["ids", "default"] | Sequence[str]
) -> list[tuple[str, Trace]]:
    """Read traces, those of a directory or a pattern in the order of their names.

    Raises
    ------
    TraceError, OSError
        One of them cannot be read.
    """
    found = [name for path in paths for name in _files_of(path)]
    twice = {name for name in found if found.count(name) > 1}
    if twice:
        message = f"{min(twice)} is given twice: one recording is not two runs"
        raise click.UsageError(message)
    return [(name, _read(name, options, args)) for name in found]


def _files_of(path: str) -> list[str]:
    """Give a file, or the traces of a directory or a pattern."""
    from longpole.profiles import profile_timelines

    profiled = profile_timelines(Path(path)) if Path(path).is_dir() else []
    if profiled:
        names = [str(timeline) for timeline, _ in profiled]
    elif Path(path).is_dir():
        names = sorted(map(str, Path(path).iterdir()))
        names = [name for name in names if name.endswith((".json", ".json.gz"))]
    else:
        names = [path] if Path(path).exists() or path == "-" else sorted(glob(path))  # noqa: PTH207 (a pattern may be absolute)
    if names:
        return names
    what = "traces (.json, .json.gz) in" if Path(path).is_dir() else "file or traces that match"
    raise FileNotFoundError(errno.ENOENT, f"no {what} it", path)


def _read(
    path: str, options: Options, arguments: Literal["ids", "default"] | Sequence[str]
) -> Trace:
    """Read a trace from a path, or from stdin for `-`."""
    from longpole.read import read_trace

    if path == "-" and sys.stdin.isatty():
        message = "nothing is piped into stdin; give a file, or `zcat trace.json.gz | longpole -`"
        raise click.UsageError(message)
    with reading(path, enabled=options.progress) as progress:
        source = sys.stdin.buffer if path == "-" else path
        try:
            return read_trace(
                source,
                args=arguments,
                vocabulary=options.vocabulary,
                capture_traces=options.capture_traces,
                threads=options.threads,
                progress=progress,
            )
        except ValueError as error:
            raise click.UsageError(str(error)) from error
