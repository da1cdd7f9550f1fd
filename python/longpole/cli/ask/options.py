"""Options shared by commands."""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from longpole.cli.answer.emit import emit, failed
from longpole.cli.answer.problems import Problem
from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.numbers import COUNT, MOST_THREADS
from longpole.errors import LongpoleError
from longpole.report.document import FORMATS
from longpole.report.text import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from longpole.cli.answer.emit import Answer

Command = TypeVar("Command", bound="Callable[..., int]")


@dataclass(frozen=True, slots=True)
class Options:
    """Options on how to answer, independent of the question."""

    form: str
    color: str
    debug: bool
    vocabulary: str | None = None
    threads: int | None = None
    capture_traces: tuple[str, ...] | None = None

    def emit(self, *answers: Answer) -> int:
        """Write answers in the requested format; return the exit code."""
        return self.emit_each(answers)

    def emit_each(self, answers: Iterable[Answer]) -> int:
        """Write answers as they arrive; return the exit code."""
        return emit(answers, self.form, Terminal.of(sys.stdout, self.color))

    def attempt(self, schema: str, path: str, ask: Callable[[], Answer]) -> Answer:
        """Return an answer, or an error document, so that other inputs are still answered."""
        try:
            return ask()
        except (LongpoleError, OSError) as error:
            if self.debug:
                raise
            return failed(schema, Problem.of(error).at(path))


def answers(
    *declared: str, has_rows: bool = False
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Declare what a command answers, as `module:Class`, for `longpole schema`.

    Several declarations are alternatives. With `has_rows`, the answer is a list of these as `rows`.
    """

    def mark(command: Callable[..., int]) -> Callable[..., int]:
        command.__dict__["answer"] = (declared, has_rows)
        return command

    return mark


def gather(
    argument: str, options: Mapping[str, Callable[[Any], Any]], make: Callable[..., object]
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add options to a command, whose values `make` turns into one argument.

    The keys of `options` are the parameters of `make`. An option that the command hides has its
    default.
    """

    def add(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        def gathered(**arguments: Any) -> int:
            values = {name: arguments.pop(name) for name in options if name in arguments}
            return command(**{argument: make(**values)}, **arguments)

        for option in reversed([*options.values()]):
            gathered = option(gathered)
        return gathered

    return add


_TERMINAL: Final = {
    "debug": click.option("--debug", is_flag=True, help="Show tracebacks."),
}
_ANSWER: Final = {
    "form": click.option(
        "--format",
        "form",
        type=click.Choice(FORMATS),
        default="text",
        envvar="LONGPOLE_FORMAT",
        show_default=True,
        help="Output format.",
    ),
    "as_json": click.option("--json", "as_json", is_flag=True, help="Short for --format json."),
    "color": click.option(
        "--color",
        type=click.Choice(("auto", "always", "never")),
        default="auto",
        show_default=True,
        help="When to use colours; NO_COLOR turns them off.",
    ),
    **_TERMINAL,
}
vocabulary_option: Final = click.option(
    "--vocabulary",
    type=click.Path(dir_okay=False, readable=False),
    envvar="LONGPOLE_VOCABULARY",
    metavar="FILE",
    help="TOML file with custom name patterns for kernels, API calls and data loading.",
)
_CAPTURES: Final = click.option(
    "--capture-trace",
    "capture_traces",
    type=click.Path(dir_okay=False, readable=False),
    multiple=True,
    metavar="FILE",
    help="Trace of the capture of the CUDA graphs. Repeatable.  [default: X.capture.json.gz, "
    "capture_traces/ or graph_capture_profile/ beside X.json.gz]",
)
_READING: Final = {"vocabulary": vocabulary_option}


def _options(
    *,
    debug: bool,
    form: str = "text",
    as_json: bool = False,
    color: str = "auto",
    capture_traces: tuple[str, ...] = (),
    **reading: Any,
) -> Options:
    debug = debug or bool(click.get_current_context().find_root().params.get("debug"))
    form = "json" if as_json else form
    threads = _threads() if reading else None
    captures = capture_traces or None
    return Options(form, color, debug, threads=threads, capture_traces=captures, **reading)


def _threads() -> int | None:
    """Return the number of threads that LONGPOLE_THREADS sets, or None for all cores."""
    text = os.environ.get("LONGPOLE_THREADS")
    if not text:
        return None
    if text.isdecimal() and len(text) <= len(str(MOST_THREADS)) and 1 <= int(text) <= MOST_THREADS:
        return int(text)
    message = f"LONGPOLE_THREADS is a number from 1 to {MOST_THREADS}, not {text!r}"
    raise click.UsageError(message)


answer_options: Final = gather("options", _ANSWER, _options)
"""Add the options for the answer to a command, as its argument `options`."""

shared_options: Final = gather("options", {**_ANSWER, **_READING}, _options)
"""Add the options for reading traces and for the answer to a command, as `options`."""

graph_options: Final = gather(
    "options", {**_ANSWER, **_READING, "capture_traces": _CAPTURES}, _options
)
"""Add the `shared_options`, and the traces of the captures of CUDA graphs, as `options`."""

resume_option: Final = click.option(
    "--resume",
    is_flag=True,
    help="Continue an earlier run: what it completed is not repeated.",
)

reuse_option: Final = click.option(
    "--reuse",
    multiple=True,
    metavar="RESULTS",
    type=click.Path(dir_okay=False, readable=False),
    help="Results of an earlier run, whose measurements are not repeated. Repeatable.",
)

force_option: Final = click.option("-f", "--force", is_flag=True, help="Replace files that exist.")


def output_options(
    told: str = "File to write.", *, required: bool = True
) -> Callable[[Command], Command]:
    """Add the options for the output file to a command, `output` and `force`."""

    def add(command: Command) -> Command:
        output = click.option(
            "-o",
            "--output",
            required=required,
            type=OutputPath(is_path=True),
            help=told,
        )
        return output(force_option(command))

    return add


def top_option(most: int) -> Callable[[Command], Command]:
    """Add the option for the number of rows of each table to a command, `top`."""
    return click.option(
        "--top",
        type=COUNT,
        metavar="N",
        default=most,
        show_default=True,
        help="Number of rows to list in each table.",
    )
