"""`longpole tunableop check`, `env` and `files`: whether torch uses the files of a run."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.problems import require
from longpole.cli.ask.numbers import MOST_DEVICES
from longpole.cli.ask.options import Options, answer_options, answers
from longpole.report.blocks import Entry, Headline, Sentence
from longpole.report.document import Document
from longpole.words.wording import count, escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from longpole.bench.tunableop import Phase, Problem
    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block, Style

from longpole.cli.tunableop.rows import rows_answer

__all__ = ["check", "env", "files"]

_STYLES: Final[dict[str, Style]] = {"error": "bad", "warning": "warn", "info": "dim"}
_MOST_LINES: Final = 8
_MOST_PLACES: Final = 3
_NAME: Final = click.option(
    "--name", metavar="FILE", help="Name of the results file, as given to torch."
)
_UNTUNED: Final = click.option(
    "--untuned", metavar="FILE", help="Name of the untuned file, as given to torch."
)


@click.command()
@answers("longpole.cli.tunableop.data:Checked")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--torch",
    "version",
    metavar="VERSION",
    help="Version of torch that will read them.  [default: the installed one]",
)
@click.option(
    "--expect",
    multiple=True,
    metavar="KEY=VALUE",
    help="Validator that the file must have. Repeatable.",
)
@answer_options
def check(
    *, files: tuple[str, ...], version: str | None, expect: tuple[str, ...], options: Options
) -> int:
    """Find what makes torch ignore a file, lose rows of it, or choose a slow solution.

    Validators are compared with the installed torch, if there is one. Several files are
    compared with each other. The exit code is 1 if there is an error or a warning.

    \b
    Examples:
      longpole tunableop check tunableop_results0.csv
      longpole tunableop check run*.csv --torch 2.9.1 --expect GCN_ARCH_NAME=gfx942
    """
    from longpole.bench import tunableop
    from longpole.bench.tunableop import Installed

    pairs = [text.partition("=") for text in expect]
    if any(not mark for _, mark, _ in pairs):
        message = "give KEY=VALUE"
        raise click.BadParameter(message, param_hint="'--expect'")
    asked = Installed({"PT_VERSION": version}, is_complete=False) if version else None
    known = asked or tunableop.installed_validators()
    expected = {**known.validators, **{key: value for key, _, value in pairs}}
    read = [tunableop.read(file) for file in files]
    problems = tunableop.check(read, expected=expected, is_complete=known.is_complete)
    found = [
        _check_answer(file.name, [each for each in problems if each.file == file.name])
        for file in read
    ]
    return options.emit(*found)


@click.command()
@answers("longpole.cli.tunableop.data:VariableRow", has_rows=True)
@click.argument("phase", type=click.Choice(("collect", "tune", "use")))
@_NAME
@_UNTUNED
@click.option(
    "--torch",
    "version",
    metavar="VERSION",
    help="Version of torch that will read them.  [default: the installed one]",
)
@click.option("--exports", is_flag=True, help="Print export commands for a shell.")
@answer_options
def env(
    *,
    phase: Phase,
    name: str | None,
    untuned: str | None,
    version: str | None,
    exports: bool,
    options: Options,
) -> int:
    """Print the variables to collect GEMMs, tune them, or use the results.

    It warns about variables that are set but have no effect, or that torch does not know. Set the
    variables before you import torch, which reads each of them once. `os.putenv` does not
    change `os.environ`.

    \b
    Examples:
      longpole tunableop env collect
      longpole tunableop env use --name tunableop_results_full%d.csv
      eval "$(longpole tunableop env collect --exports)"
    """
    from longpole.bench import tunableop
    from longpole.bench.tunableop import VARIABLES
    from longpole.cli.tunableop.data import VariableRow

    given = tunableop.environment(phase, filename=name, untuned_filename=untuned)
    meanings = {variable.full_name: variable.meaning for variable in VARIABLES}
    rows = [
        VariableRow(variable=f"{variable}={value}", meaning=meanings[variable])
        for variable, value in given.items()
    ]
    warnings = tunableop.environment_warnings({**os.environ, **given}, version)
    if exports:
        require(options.form == "text", "--exports and --format exclude each other")
        return _export(given, warnings)
    answer = rows_answer("env", None, f"to {phase}:", {"rows": rows}, VariableRow, notes=warnings)
    return options.emit(answer)


def _export(variables: Mapping[str, str], warnings: Iterable[str]) -> int:
    """Print commands that a shell can evaluate, and warnings on stderr."""
    for name, value in variables.items():
        sys.stdout.write(f"export {name}={shlex.quote(value)}\n")
    for warning in warnings:
        sys.stderr.write(f"warning: {escape(warning)}\n")
    return exit_codes.OK


@click.command()
@answers("longpole.bench.tunableop.names:ProcessFile", has_rows=True)
@_NAME
@_UNTUNED
@click.option(
    "--visible",
    multiple=True,
    metavar="LIST",
    help="The value of the visibility variable of a process. Repeatable, for several processes.",
)
@click.option(
    "--n-devices",
    "devices",
    type=click.IntRange(0, MOST_DEVICES),
    metavar="N",
    help="Number of devices of the machine.",
)
@answer_options
def files(
    *,
    name: str | None,
    untuned: str | None,
    visible: tuple[str, ...],
    devices: int | None,
    options: Options,
) -> int:
    """Show which files a process reads and writes, for each device that it sees.

    The ordinal replaces %d or comes before the last dot, and counts the devices that the
    process sees. Without --visible, the answer uses the visibility variables and
    PYTORCH_TUNABLEOP_FILENAME of this process. The exit code is 1 if processes would share
    a file.

    \b
    Examples:
      longpole tunableop files --n-devices 8
      longpole tunableop files --visible 0 --visible 1
    """
    from longpole.bench.tunableop import files as files_of
    from longpole.bench.tunableop import name_warnings
    from longpole.bench.tunableop.names import ProcessFile

    environs = _environs(visible)
    found = [
        file
        for process, environ in enumerate(environs)
        for file in files_of(
            results=name, untuned=untuned, n_devices=devices, environ=environ, process=process
        )
    ]
    warnings = name_warnings(found, *filter(None, (name, untuned)))
    code = exit_codes.FINDINGS if warnings else exit_codes.OK
    headline = f"{count(len(found), 'device')} in {count(len(environs), 'process', 'processes')}"
    answer = rows_answer(
        "files",
        None,
        headline,
        {"rows": found},
        ProcessFile,
        *("process", "ordinal", "device", "results", "exists", "untuned"),
        notes=warnings,
        exit_code=code,
    )
    return options.emit(answer)


def _environs(visible: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the environment of each process; by default that of the current one."""
    if not visible:
        return [dict(os.environ)]
    others = {name: text for name, text in os.environ.items() if name != "HIP_VISIBLE_DEVICES"}
    return [{**others, "CUDA_VISIBLE_DEVICES": text} for text in visible]


def _check_answer(path: str, problems: Sequence[Problem]) -> Answer:
    """List problems with their codes; errors and warnings set the exit code."""
    from longpole.cli.tunableop.data import Checked

    is_bad = any(problem.severity != "info" for problem in problems)
    document = Document(
        schema="longpole.tunableop.check/1",
        input={"path": path},
        data=Checked(problems=list(problems)),
        blocks=lambda: _problems(path, problems),
        records=lambda: [{**each.to_dict(), "lines": _lines(each.lines)} for each in problems],
    )
    return document, exit_codes.FINDINGS if is_bad else exit_codes.OK


def _problems(path: str, problems: Sequence[Problem]) -> list[Block]:
    if not problems:
        return [Sentence(f"{path}: no problems found")]
    by_code: dict[str, list[Problem]] = {}
    for problem in problems:
        by_code.setdefault(problem.code, []).append(problem)
    order = sorted(by_code, key=lambda code: list(_STYLES).index(by_code[code][0].severity))
    return [Headline(path), *(_entry(code, by_code[code]) for code in order)]


def _entry(code: str, problems: Sequence[Problem]) -> Entry:
    first = problems[0]
    rest = len(problems) - _MOST_PLACES
    more = [f"and {rest} more"] if rest > 0 else []
    places = [_place(problem) for problem in problems[:_MOST_PLACES]]
    effect = f"Effect: {first.kind.effect}. Hint: {first.kind.hint}."
    return Entry(first.severity, _STYLES[first.severity], code, [*places, *more, effect])


def _place(problem: Problem) -> str:
    word = "line" if len(problem.lines) == 1 else "lines"
    where = f"{word} {_lines(problem.lines)}: " if problem.lines else ""
    return f"{where}{problem.message}"


def _lines(lines: Iterable[int]) -> str:
    """Return line numbers, up to a limit."""
    numbers = [str(line) for line in lines]
    rest = f" and {len(numbers) - _MOST_LINES} more" if len(numbers) > _MOST_LINES else ""
    return ", ".join(numbers[:_MOST_LINES]) + rest
