"""`longpole tunableop check`: whether torch uses the files of a run, and which they are."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.problems import require
from longpole.cli.ask.options import Options, answer_options, answers
from longpole.cli.ask.runner import devices_option
from longpole.report.blocks import Entry, Headline, Sentence
from longpole.report.document import Document
from longpole.words.wording import count, escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from longpole.bench.tunableop import Phase, Problem
    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block, Style

from longpole.cli.tunableop.rows import rows_answer

_STYLES: Final[dict[str, Style]] = {"error": "bad", "warning": "warn", "info": "dim"}
_MOST_LINES: Final = 8
_MOST_PLACES: Final = 3
_PREFIX: Final = "PYTORCH_TUNABLEOP_"


@click.command()
@answers(
    "longpole.cli.tunableop.data:Checked",
    "longpole.cli.tunableop.data:ProcessFiles",
    "longpole.cli.tunableop.data:Variables",
)
@click.argument("files", nargs=-1, metavar="[FILE...]")
@click.option(
    "--expect",
    multiple=True,
    metavar="KEY=VALUE",
    help="Validator of the torch that will read the files, such as PT_VERSION=2.9.1. Repeatable."
    "  [default: those of the installed torch]",
)
@click.option(
    "--phase",
    type=click.Choice(("collect", "tune", "use")),
    help="Print the variables to collect GEMMs, tune them, or use the results.",
)
@click.option("--exports", is_flag=True, help="Print export commands for a shell.")
@click.option(
    "--visible",
    multiple=True,
    metavar="LIST",
    help="The value of the visibility variable of a process. Repeatable, for several processes.",
)
@devices_option("fake:1, one device")
@answer_options
def check(
    *,
    files: tuple[str, ...],
    expect: tuple[str, ...],
    phase: Phase | None,
    exports: bool,
    visible: tuple[str, ...],
    devices: str | None,
    options: Options,
) -> int:
    """Find what makes torch ignore a file, lose rows of it, or choose a slow solution.

    Validators are compared with the installed torch, if there is one. Several files are
    compared with each other. Without FILE, show which files a process reads and writes for each
    device that it sees, by the variables of this process, and what is wrong with these. With
    --phase, print the variables to set before torch is imported; file names are those in
    PYTORCH_TUNABLEOP_FILENAME and PYTORCH_TUNABLEOP_UNTUNED_FILENAME.

    The exit code is 1 if there is an error or a warning.

    \b
    Examples:
      longpole tunableop check tunableop_results0.csv
      longpole tunableop check run*.csv --expect PT_VERSION=2.9.1 --expect GCN_ARCH_NAME=gfx942
      longpole tunableop check --visible 0 --visible 1
      eval "$(longpole tunableop check --phase collect --exports)"
    """
    require(not (files and (phase or visible)), "--phase and --visible are for no FILE")
    require(bool(phase) or not exports, "--exports needs --phase")
    expected = _expected(expect)
    if phase:
        return _check_phase(phase, expected.get("PT_VERSION"), options, exports=exports)
    if not files:
        return options.emit(_processes(visible, devices, expected.get("PT_VERSION")))
    return options.emit(*_checked(files, expected))


def _expected(given: Sequence[str]) -> dict[str, str]:
    from longpole.bench.tunableop.environment import release_of

    pairs = [text.partition("=") for text in given]
    if any(not mark for _, mark, _ in pairs):
        message = "give KEY=VALUE"
        raise click.BadParameter(message, param_hint="'--expect'")
    found = {key: value for key, _, value in pairs}
    version = found.get("PT_VERSION", "0.0")
    require(
        release_of(version) is not None,
        f"--expect PT_VERSION={version}: this is not a version, such as 2.9.1",
    )
    return found


def _checked(files: Sequence[str], expected: Mapping[str, str]) -> list[Answer]:
    """Check files; a given version stands for another torch than the installed one."""
    from longpole.bench import tunableop
    from longpole.bench.tunableop import Installed
    from longpole.bench.tunableop.records import check_kinds

    is_another = "PT_VERSION" in expected
    known = Installed({}, is_complete=False) if is_another else tunableop.installed_validators()
    read = [tunableop.read(file) for file in files]
    check_kinds(read)
    problems = tunableop.check(
        read, expected={**known.validators, **expected}, is_complete=known.is_complete
    )
    return [
        _check_answer(file.name, [each for each in problems if each.file == file.name])
        for file in read
    ]


def _check_phase(phase: Phase, version: str | None, options: Options, *, exports: bool) -> int:
    """Print the variables of a phase, and warn about those that have no effect."""
    from longpole.bench import tunableop
    from longpole.bench.tunableop import VARIABLES
    from longpole.cli.tunableop.data import VariableRow, Variables

    names = {"filename": "FILENAME", "untuned_filename": "UNTUNED_FILENAME"}
    known = {each: os.environ.get(_PREFIX + name) for each, name in names.items()}
    given = tunableop.environment(phase, **known)
    meanings = {variable.full_name: variable.meaning for variable in VARIABLES}
    rows = [
        VariableRow(variable=f"{variable}={value}", meaning=meanings[variable])
        for variable, value in given.items()
    ]
    warnings = tunableop.environment_warnings({**os.environ, **given}, version)
    if exports:
        require(options.form == "text", "--exports and --format exclude each other")
        return _export(given, warnings)
    headline = f"to {phase}:"
    data = Variables(rows=rows)
    return options.emit(rows_answer("check", None, headline, data, VariableRow, notes=warnings))


def _export(variables: Mapping[str, str], warnings: Iterable[str]) -> int:
    """Print commands that a shell can evaluate, and warnings on stderr."""
    for name, value in variables.items():
        sys.stdout.write(f"export {name}={shlex.quote(value)}\n")
    for warning in warnings:
        sys.stderr.write(f"warning: {escape(warning)}\n")
    return exit_codes.OK


def _processes(visible: Sequence[str], devices: str | None, version: str | None) -> Answer:
    """Show the files of each device of each process, and what is wrong with the variables."""
    from longpole.bench import tunableop
    from longpole.bench.tunableop.names import ProcessFile
    from longpole.cli.tunableop.data import ProcessFiles
    from longpole.devices import select

    n_devices = len(select(devices.split(","))) if devices else None
    environs = _environs(visible)
    found = [
        file
        for process, environ in enumerate(environs)
        for file in tunableop.files(n_devices=n_devices, environ=environ, process=process)
    ]
    names = (os.environ.get(_PREFIX + name) for name in ("FILENAME", "UNTUNED_FILENAME"))
    warnings = [
        *tunableop.name_warnings(found, *filter(None, names)),
        *tunableop.environment_warnings(version=version),
    ]
    headline = f"{count(len(found), 'device')} in {count(len(environs), 'process', 'processes')}"
    return rows_answer(
        "check",
        None,
        headline,
        ProcessFiles(rows=found),
        ProcessFile,
        *("process", "ordinal", "device", "results", "exists", "untuned"),
        notes=warnings,
        exit_code=exit_codes.FINDINGS if warnings else exit_codes.OK,
    )


def _environs(visible: Sequence[str]) -> list[dict[str, str]]:
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
