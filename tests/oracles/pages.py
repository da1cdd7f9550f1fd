"""Write the pages that follow from the code, and the answers that other pages show.

    python tests/oracles/pages.py [--write]

Prints what differs and ends with 1; with `--write` the pages are made anew. A page shows an answer
below the command that gives it, about the traces of `longpole demo` and of `tests/recordings`.
"""

from __future__ import annotations

import contextlib
import errno
import inspect
import io
import json
import os
import re
import shlex
import sys
import tempfile
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

import longpole
from longpole import mindspore
from longpole.cli.answer import exit_codes
from longpole.cli.answer.problems import Problem
from longpole.cli.guide import guide_text
from longpole.cli.program import longpole as program
from longpole.cli.program import run
from longpole.cli.schema import schema_for, schema_names
from longpole.remedies import evidence
from longpole.remedies.catalogue import remedies
from longpole.tables.findings import KINDS, SEVERITIES
from longpole.tables.program_notes import RULES
from longpole.tables.questions import TABLES, questions

sys.path.insert(0, str(Path(__file__).parents[1]))
from oracles.pictures import path_picture

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
STUBBED: Final = (longpole, mindspore)
"""Packages that import their public names on first use."""
STUB_HEAD: Final = '"""Written by tests/oracles/pages.py."""\n'
LONGEST_LINE: Final = 100
API_HEAD: Final = (
    "The public names of `longpole`. Each [table](tables.md) is a function that returns a "
    "`polars.DataFrame`. A function that takes a trace also accepts its path, its bytes or an open "
    "file."
)
REMEDIES_HEAD: Final = """# Remedies

A remedy is something to change in a program. longpole looks for each of these in the steps that a
verdict is about, and solves the dependency graph without what surely goes, then without what may
go: the two are the interval of its gain. [What is named](verdict.md#what-is-named) says which are
in the summary; `longpole whatif TRACE` lists all. "Then saves" is the gain after those
before it.

Another package adds remedies of its own with an entry point of the group `longpole.remedies` that
names a `longpole.remedies.Remedy`.

"""
REMEDIES_END: Final = """
A remedy is found only if the trace records what shows it. `longpole whatif --remedy ID` says what
that is, and what was measured; [how often answers are right](generated/accuracy.md#remedies) has
all measurements.
"""
REMEDIES_MEASURED: Final = """
## Remedies

Programs of `examples/remedies` were timed in turns, slow and mended, without a profiler, and the
slow one was recorded. What was measured stands beside what was predicted from that trace: by the
version that recorded it, and now. Remedies were mended after the first, so the second does not test
them. `longpole whatif --remedy ID` shows the same.

| remedy | program | measured gain | predicted at first | predicted now | where |
| --- | --- | --- | --- | --- | --- |
"""

TABLES_HEAD: Final = """# Tables

`longpole table TRACE NAME` prints a table, `longpole.NAME(trace)` returns it in Python, and
`longpole schema table NAME` prints the types of its columns as JSON Schema. The tables of the
critical path are attributes of `trace.critical_path()`: `segments`, `slack`, `violations`, and
`sync_dependencies` for `sync`. Times are integers in nanoseconds, shares are fractions of 1, and
unknown values are null.

These columns mean the same in every table. Other columns without a description contain what their
name says, and are listed below their table.

| column | meaning |
| --- | --- |
| `event` | Row of `trace.events`; so are `call`, `longest_event`, and an integer `operator` |
| `kind` | `kernel`, `memcpy`, `memset` and the other kinds of events |
| `work_class` | `compute`, `communication` or `copy` |
| `name` | Name of the event as the profiler recorded it; `call_name` and `operator_name` likewise |
| `device`, `stream` | Device and stream on which it ran |
| `start_ns`, `duration_ns` | Start on the clock of the profiler, and length |
| `correlation` | Id that the profiler gave to the runtime API call and to what it launched |
| `count`, columns that begin with `n_` | How many events or objects the row stands for |
| `mean` to `max` | Mean, sample deviation, minimum, quartiles (interpolated), maximum |
| `window_share` | Share of the length of the window |
| `shapes`, `strides`, `dtypes` | Recorded inputs of the operator |
"""
OF_PROGRAM_HEAD: Final = """
## About the program

Habits and settings of the program that cost time, in a section of their own and in `data.program`.
They change neither the exit code nor the counts. Each is reported only if one cause can explain
what the trace shows; `longpole whatif TRACE` computes what changes save.

| note | what the trace shows | what to do |
| --- | --- | --- |
"""
STATISTICS: Final = ("mean", "std", "min", "p25", "median", "p75", "max")
FINDINGS_HEAD: Final = """# What `longpole check` reports

`longpole check` lists the problems of a trace. Each has a stable code, a severity, a count, the
first place where it occurs, its effect on the answers, and usually a hint.

| severity | meaning | exit code |
| --- | --- | --- |
| `data_loss` | part of the file is missing from the tables | `1` |
| `altered` | longpole changed part of the file to read it | `1` |
| `warning` | the file may be wrong; the tables contain it unchanged | `0`, with `--strict` `1` |
| `info` | a note | `0` |

Words in italics stand for names and figures. A GPU activity is a kernel, memcpy or memset. The
[glossary](../glossary.md) explains the other terms. `clock_shift` is reported above 20 µs.

## Problems of the events

"""
OF_READING_HEAD: Final = """
## Problems of the file

A file that longpole converted from a damaged one has the losses of that file, with the words
"in the file before conversion".

`trace.diagnostics` has the same rows. With `strict=True`, `read_trace` raises an error at the first
problem of severity `altered` or `data_loss`, and at a byte order mark.

"""
ERRORS_HEAD: Final = """# Error codes

An error is one sentence with its code in brackets. With `--json`, it is also the `error` of the
[envelope](../exit-codes.md#the-json-envelope). In Python, the exception has the code as `code`.

| code | exit code | meaning |
| --- | --- | --- |
"""
SCHEMAS_HEAD: Final = """# JSON Schemas

The schema of the `data` of each command and table, and of the `envelope` around it.
`longpole schema NAME` prints the same.

"""
SYSTEM_ERRORS: Final = {
    errno.ENOENT: "no such file",
    errno.EACCES: "permission denied",
    errno.EISDIR: "a directory where a file is needed",
    errno.EIO: "the operating system cannot read or write the file",
}
DOCUMENTED_KIND: Final = re.compile(r"^    /// (.+)\n    (\w+)[,({ ]", re.MULTILINE)
CODE_OF_KINDS: Final = re.compile(r'^ +((?:\|? ?ErrorKind::\w+[^=]*?)+) => "(\w+)"', re.MULTILINE)
"""The kinds of errors of the core: what they mean, and their codes."""
RAISED_AS_OTHERS: Final = {"Io", "Pattern", "NotAPair", "NoWindow", "Cancelled"}
"""Kinds that the binding raises as other exceptions than `TraceError`."""
DECLARED: Final = re.compile(r'^ +\w+ "(\w+)" (\w+) "(.+)" "(.+)";$', re.MULTILINE)
"""A finding of the reader, as the core declares it."""
NAMES: Final = {"Info": "info", "Warning": "warning", "Altered": "altered", "Loss": "data_loss"}


def _summary(value: Any) -> str:
    """Return the first sentence of what something says of itself."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return "The instructions that `flops` counts, and their weights"
    return (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ").removesuffix(".")


def every_table() -> str:
    """List every table with its columns, by the question that it answers."""
    parts = [TABLES_HEAD]
    shown: dict[str, str] = {}
    for group, names in TABLES.items():
        parts.append(f"## {group}")
        for name, sentence in names.items():
            listed = _columns(name, shown) if name in questions() else []
            parts += [f"### {name}\n\n{sentence}.", *listed]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _columns(name: str, shown: dict[str, str]) -> Iterator[str]:
    """List the columns of a table, and its fields other than the rows."""
    properties = schema_for(f"table {name}", program)["properties"]
    for key, schema in properties.items():
        columns = schema.get("items", {}).get("properties")
        if columns and schema.get("type") == "array":
            title = "" if key == "rows" else f"`{key}`:\n\n"
            listed = _listed(_folded(columns))
            yield title + (f"Columns as in {shown[listed]}." if listed in shown else listed)
            of = "" if key == "rows" else f"`{key}` of "
            shown.setdefault(listed, f"{of}[{name}](#{name})")


def _listed(columns: dict[str, Any]) -> str:
    """Describe columns in a table, neighbours of one description together, others below it."""
    texts = [(f"`{column}`", _text(its)) for column, its in columns.items()]
    described = groupby((row for row in texts if row[1]), key=itemgetter(1))
    rows = [f"| {', '.join(name for name, _ in alike)} | {text} |" for text, alike in described]
    others = ", ".join(name for name, text in texts if not text)
    below = f"{'Also ' if rows else ''}{others}." if others else ""
    table = "\n".join(["| column | meaning |", "| --- | --- |", *rows]) if rows else ""
    return f"{table}\n\n{below}".strip()


def _folded(columns: dict[str, Any]) -> dict[str, Any]:
    """Return one name for the statistics of a quantity, from its mean to its maximum."""
    folded = {}
    for column, its in columns.items():
        before, figure, after = _around_statistic(column)
        if figure == "mean" and f"{before}max{after}" in columns:
            last = f"{before}max{after}"
            folded[f"{column}` to `{last}"] = {}
        elif not figure or f"{before}mean{after}" not in columns:
            folded[column] = its
    return folded


def _around_statistic(column: str) -> tuple[str, str, str]:
    """Split the name of a column around the statistic that it names, if it names one."""
    found = re.fullmatch(rf"(\w+_)?({'|'.join(STATISTICS)})(_ns)?", column)
    return (found[1] or "", found[2], found[3] or "") if found else ("", "", "")


def _text(schema: dict[str, Any]) -> str:
    """Describe a column in one line."""
    return schema.get("description", "").replace("\n", " ").removesuffix(".").replace("|", "\\|")


def every_finding() -> str:
    """List what `check` finds, the gravest first."""
    of_events = [(code, kind.severity, kind.sentence, kind.effect) for code, kind in KINDS.items()]
    core = (ROOT / "rust/longpole-core/src/diagnostics.rs").read_text(encoding="utf-8")
    declared = DECLARED.findall(core)
    of_reading = [(code, NAMES[severity], *texts) for code, severity, *texts in declared]
    problems = FINDINGS_HEAD + _findings(of_events) + OF_READING_HEAD + _findings(of_reading)
    rules = (f"| `{rule.code}` | {rule.seen_by} | {rule.advice} |\n" for rule in RULES)
    return problems + OF_PROGRAM_HEAD + "".join(rules)


def _findings(findings: list[tuple[str, ...]]) -> str:
    rows = sorted(findings, key=lambda finding: SEVERITIES.index(finding[1]))
    parts = (_of_severity(name, list(alike)) for name, alike in groupby(rows, key=itemgetter(1)))
    return "\n".join(parts)


def _of_severity(severity: str, findings: list[tuple[str, ...]]) -> str:
    head = f"| `{severity}` | problem | effect |\n| --- | --- | --- |\n"
    texts = (f"| `{code}` | {found} | {cost} |\n" for code, _, found, cost in findings)
    return head + "".join(re.sub(r"\{(\w+)\}", r"*\1*", text) for text in texts)


def every_remedy() -> str:
    """Return the page of remedies: what each is seen by, what it changes, when it does not fit."""
    head = "| remedy | what the trace shows | what is changed | not when |"
    rows = [head, "| --- | --- | --- | --- |"]
    for one in remedies():
        what = f"`{one.id}` ({one.side}, {one.effort.replace('_', ' ')})"
        rows.append(f"| {what} | {one.seen_by} | {one.change} | {one.not_when} |")
    return REMEDIES_HEAD + "\n".join(rows) + "\n" + REMEDIES_END


def accuracy() -> str:
    """Return how often answers are right: of simulated programs, and measured gains of remedies."""
    simulated = (ROOT / "benches/accuracy.md").read_text(encoding="utf-8")
    measured = [_measured(one.id) for one in remedies()]
    return simulated + REMEDIES_MEASURED + "\n".join(measured) + "\n"


def _measured(remedy: str) -> str:
    """Return the rows of what a remedy was measured to save."""
    rows = evidence.measured(remedy)
    if not rows:
        return f"| `{remedy}` | not measured | | | | |"
    return "\n".join(
        f"| `{remedy}` | {row['program']} | {100 * row['gain'][0]:.0f} % "
        f"({100 * row['gain'][1]:.0f} to {100 * row['gain'][2]:.0f}) | "
        f"{' | '.join(evidence.predictions(row))} | "
        f"{row['device']}, torch {row['torch']}, {row['date']} |"
        for row in rows
    )


def every_command() -> str:
    """Show the help of every command."""
    os.environ.pop("COLUMNS", None)
    helps = (
        f"## {name}\n\n```text\n{command.get_help(context).strip()}\n```"
        for name, command, context in _commands(
            program, click.Context(program, info_name="longpole")
        )
    )
    return "# Commands\n\nThe `--help` of every command.\n\n" + "\n\n".join(helps) + "\n"


def _commands(
    command: click.Command, context: click.Context
) -> Iterator[tuple[str, click.Command, click.Context]]:
    yield context.command_path, command, context
    for word in command.list_commands(context) if isinstance(command, click.Group) else ():
        found = command.get_command(context, word)
        assert found is not None
        yield from _commands(found, click.Context(found, parent=context, info_name=word))


def every_error() -> str:
    """List the codes of errors: of the core, and of the other exceptions."""
    rows = [*_errors_of_reading(), *_other_errors()]
    table = "".join(f"| `{code}` | `{exit_code}` | {text} |\n" for code, exit_code, text in rows)
    return ERRORS_HEAD + table


def _errors_of_reading() -> Iterator[tuple[str, int, str]]:
    """List the codes of `TraceError` that the core declares."""
    source = (ROOT / "rust/longpole-core/src/error.rs").read_text(encoding="utf-8")
    meanings = {kind: text for text, kind in DOCUMENTED_KIND.findall(source)}
    for kinds, code in CODE_OF_KINDS.findall(source):
        kind = re.findall(r"ErrorKind::(\w+)", kinds)[0]
        if kind not in RAISED_AS_OTHERS:
            yield code, exit_codes.UNREADABLE, meanings[kind].removesuffix(".")


def _other_errors() -> Iterator[tuple[str, int, str]]:
    raised = [getattr(longpole, name) for name in longpole._GROUPS["Errors"]]
    known = [kind for kind in raised if kind not in (longpole.LongpoleError, longpole.TraceError)]
    for kind in known:
        problem = Problem.of(kind(""))
        yield problem.code, problem.exit_code, f"`{kind.__name__}`: {_summary(kind)}"
    for error in (click.UsageError("wrong use"), FileExistsError("the output file exists")):
        problem = Problem.of(error)
        yield problem.code, problem.exit_code, str(error)
    for number, text in SYSTEM_ERRORS.items():
        problem = Problem.of(OSError(number, text))
        yield problem.code, problem.exit_code, text


def every_schema() -> str:
    """List the JSON Schemas that the site has in addition to this page."""
    names = (f'- <a href="schemas/{_file_of(name)}">{name}</a>' for name in schema_names(program))
    return SCHEMAS_HEAD + "\n".join(names) + "\n"


def schema_files() -> dict[str, str]:
    """Return every JSON Schema, by the name of its file."""
    return {
        _file_of(name): json.dumps(schema_for(name, program), indent=2, ensure_ascii=False)
        for name in schema_names(program)
    }


def _file_of(name: str) -> str:
    return name.replace(" ", ".") + ".json"


def documented_api() -> str:
    """Show the docstring of every public name, by groups."""
    parts = ["# Python API", API_HEAD]
    for group, names in longpole._GROUPS.items():
        parts += [f"## {group}", *(_documented(name) for name in names)]
    return "\n\n".join(parts) + "\n"


def _documented(name: str) -> str:
    value = getattr(longpole, name)
    kind = "class" if inspect.isclass(value) else "function" if callable(value) else "data"
    members = "\n   :members:" if kind == "class" else ""
    return f"```{{eval-rst}}\n.. auto{kind}:: longpole.{name}{members}\n```"


def types_of_names(package: ModuleType) -> str:
    """Import every public name of a package, as type checkers read it."""
    lines = [STUB_HEAD]
    for name, module in sorted(package._MODULES.items(), key=_place_of_import):
        line = f"from longpole.{module} import {name} as {name}"
        if len(line) > LONGEST_LINE:
            line = f"from longpole.{module} import (\n    {name} as {name},\n)"
        lines.append(line)
    return "\n".join(lines) + "\n"


def _place_of_import(public: tuple[str, str]) -> tuple[str, bool, bool, str]:
    """Sort imports as ruff does: by module, then constants, classes and functions."""
    name, module = public
    return module, not name.isupper(), not name[0].isupper(), name


PAGES: Final = {
    "images/path.svg": path_picture,
    "remedies.md": every_remedy,
}
GENERATED: Final = {
    "agents.md": guide_text,
    "accuracy.md": accuracy,
    "tables.md": every_table,
    "check.md": every_finding,
    "commands.md": every_command,
    "errors.md": every_error,
    "schemas.md": every_schema,
    "api.md": documented_api,
}
"""Pages that only the site has."""
_ABOUT_EXAMPLES: Final = (
    ROOT / "README.md",
    DOCS / "critical-path.md",
    DOCS / "tutorial.md",
    *DOCS.glob("how-to/*.md"),
)
SHOWING: Final = [
    page for page in sorted(_ABOUT_EXAMPLES) if "\n$ longpole " in page.read_text("utf-8")
]
"""Pages that show answers."""
SHOWN: Final = re.compile(
    r"(?P<asked>^\$ longpole (?P<words>.+?)(?: \| head -(?P<lines>\d+))?\n)(?P<told>.*?)(?=^```)",
    re.MULTILINE | re.DOTALL,
)


def answered(page: Path) -> str:
    """Return a page in which every command is followed by what it prints."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        _told("demo")
        Path("tests").symlink_to(ROOT / "tests")
        return SHOWN.sub(_answered, page.read_text(encoding="utf-8"))


def _answered(block: re.Match[str]) -> str:
    described = _told(block["words"]).splitlines(keepends=True)
    shown = "".join(described[: int(block["lines"] or len(described))])
    return block["asked"] + shown.rstrip("\n") + "\n"


def _told(words: str) -> str:
    """Run a command; give what it prints where no terminal says how wide it is."""
    os.environ.pop("COLUMNS", None)
    shown = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(shown):
        run(shlex.split(words))
    return shown.buffer.getvalue().decode()


def main() -> int:
    """Check the pages, or write them."""
    texts = {DOCS / name: made() for name, made in PAGES.items()}
    texts |= {page: answered(page) for page in SHOWING}
    texts |= {Path(it.__file__).with_suffix(".pyi"): types_of_names(it) for it in STUBBED}
    differing = [path for path, text in texts.items() if path.read_text("utf-8") != text]
    if "--write" in sys.argv:
        for path in differing:
            path.write_text(texts[path], encoding="utf-8")
        return 0
    for path in differing:
        print(f"{path} is not what the code says: --write it")
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())
