"""The traces in a command's input, with one answer each."""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import click

from longpole.cli.answer.live import reading
from longpole.cli.answer.problems import usage_errors
from longpole.cli.answer.windows import abstained
from longpole.cli.ask.windows import NO_WORK
from longpole.errors import TraceError
from longpole.files.opening import is_pipe
from longpole.formats.profiles import other_timeline, timelines_in
from longpole.words.wording import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.cli.ask.options import Options
    from longpole.cli.ask.windows import Asked
    from longpole.report.document import AbstentionCode
    from longpole.trace.trace import Trace

_NOT_TRACES: Final = ("no_trace_events", "other_kind_of_file")
FILE = click.Path(allow_dash=True, readable=False)  # only for the shell completion of file names

trace_argument = click.argument("trace", type=FILE, metavar="TRACE")
"""One trace; `-` is stdin."""

traces_argument = click.argument("traces", type=FILE, nargs=-1, required=True, metavar="TRACE...")
"""One trace or more; `-` is stdin."""


def answer_each(
    paths: Sequence[str],
    options: Options,
    schema: str,
    answer: Callable[..., Answer],
    *,
    window: Asked | None = None,
    about: Literal["time", "path", "program"] = "time",
    arguments: Literal["ids", "default"] | Sequence[str] = "ids",
    then: Callable[[], Iterable[Answer]] = tuple,
) -> int:
    """Write the result of `answer` for each trace, read with `arguments`; return the exit code.

    `answer` receives the name of a trace and the trace as recorded. With a window, it also receives
    that window, or with `about="path"` its critical path, and with `about="program"` that of the
    program without the profiler. A trace that cannot be read, or lacks the window, does not affect
    the others. The answers of `then` follow.
    """

    def ask(path: str) -> Answer:
        trace = _read(path, options, arguments)
        if window is None:
            return answer(path, trace)
        of_program = about == "program"
        by_path = about != "time"
        part = window.find(trace, of_program=of_program) if by_path else window.choose(trace)
        if isinstance(part, str):
            code: AbstentionCode = "no_work" if part == NO_WORK else "empty_window"
            return abstained(schema, path, trace, part, code)
        return answer(path, trace, part)

    def one(path: str) -> Answer:
        return options.attempt(schema, path, lambda: ask(path))

    each = map(one, paths)
    return options.emit_each(answer for part in (lambda: each, then) for answer in part())


def traces_of(paths: Sequence[str]) -> list[str]:
    """Return some paths, with each folder of several traces replaced by these, sorted by name."""
    found: list[str] = []
    for path in paths:
        inside: list[str] = []
        if Path(path).is_dir():
            with suppress(TraceError):  # raised again where the folder is read
                inside = [str(trace) for trace in timelines_in(Path(path))]
        found += inside if len(inside) > 1 else [path]
    return found


def given_memory_file(path: str) -> bool:
    """Whether an input is a memory timeline or snapshot; False if it is a pipe or unreadable."""
    from longpole.trace.allocations import is_memory_file

    try:
        return is_memory_file(path)
    except OSError:
        return False


def named_traces(
    paths: Sequence[str], options: Options, *, args: Literal["ids", "default"] | Sequence[str]
) -> list[tuple[str, Trace]]:
    """Read traces; those of a directory or pattern sorted by name.

    Raises
    ------
    LongpoleError, OSError
        There are no traces, or one cannot be read.
    """
    from longpole.jobs.sources import find_sources

    found = [(it.path, path) for path in paths for it in find_sources(path)]
    names = [name for name, _ in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        message = f"{min(twice)} is given twice: a recording counts as one run"
        raise click.UsageError(message)
    read = [(name, _read_listed(name, options, args, given=given)) for name, given in found]
    return [(name, trace) for name, trace in read if trace is not None]


def _read_listed(
    name: str,
    options: Options,
    arguments: Literal["ids", "default"] | Sequence[str],
    *,
    given: str,
) -> Trace | None:
    """Read a trace; None for a file of a folder that is JSON of another kind."""
    try:
        return _read(name, options, arguments)
    except TraceError as error:
        if name != given and error.code == "no_trace_events":
            return None
        raise


def _read(
    path: str, options: Options, arguments: Literal["ids", "default"] | Sequence[str]
) -> Trace:
    """Read a trace from a path, or from stdin for `-`."""
    from longpole.formats.read import read_trace

    if path == "-" and sys.stdin.isatty():
        message = "stdin is a terminal; give a file, or `zcat trace.json.gz | longpole -`"
        raise click.UsageError(message)
    try:
        with usage_errors(), reading(path) as progress:
            trace = read_trace(
                sys.stdin.buffer if path == "-" else path,
                args=arguments,
                vocabulary=options.vocabulary,
                capture_traces=options.capture_traces,
                threads=options.threads,
                progress=progress,
            )
    except TraceError as error:
        if error.code in _NOT_TRACES and given_memory_file(path):
            raise _memory_file(path) from error
        if error.code in _NOT_TRACES and is_pipe(path):
            error.hint = f"{error.hint}; a memory timeline or snapshot must be a file, not a pipe"
        raise
    if trace.path is not None and Path(path).is_dir():
        _note_choice(trace.path)
    return trace


def _memory_file(path: str) -> TraceError:
    error = TraceError(f"{path}: a memory timeline or snapshot, not a trace")
    error.code, error.path, error.offset = "other_kind_of_file", path, 0
    error.hint = f"`longpole table {shlex.quote(path)} memory` shows its peak"
    return error


def _note_choice(read: Path) -> None:
    """Print which of two timelines of a folder was read."""
    other = other_timeline(read)
    if other is not None:
        told = f"note: read {read}, which holds all events; {other.name} holds at most a million"
        sys.stderr.write(f"{escape(told)}\n")
