"""The whole command line, and its handling of errors, Ctrl-C and closed pipes."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import click
from click.shell_completion import CompletionItem, shell_complete

from longpole.cli.answer import exit_codes
from longpole.cli.answer.emit import ClosedPipeError, emit, failed
from longpole.cli.answer.problems import Problem
from longpole.cli.ask.commands import Commands
from longpole.cli.ask.files import given_files
from longpole.cli.ask.suggestions import with_suggestion
from longpole.files.writing import inputs_protected

if TYPE_CHECKING:
    from collections.abc import Sequence

# Number of new objects after which Python searches for cycles; by default 700.
_NEW_OBJECTS: Final = 200_000
_COMPLETION: Final = "_LONGPOLE_COMPLETE"
_STARTS_PROGRAMS: Final = frozenset({"bench", "tunableop", "tune"})
"""Commands whose jobs inherit the environment."""
_OPTIONS_BEFORE_A_COMMAND: Final = {"-h", "--help", "-V", "--version", "--debug"}


class Program(Commands):
    """All commands; a file instead of a command means `summary`."""

    folder = "longpole.cli"
    sections: ClassVar = {
        "Analyse a trace": {
            "summary": "Show what limits the program, and where the time of a step went.",
            "path": "Show the critical path: what determines how long a step takes.",
            "whatif": "Compute how long a step would take after a change.",
            "table": "Print a table of a trace, or list the tables.",
            "check": "List the problems of a trace, and their effect on the answers.",
            "report": "Write a report as one HTML page that opens offline, or show it.",
        },
        "Compare runs": {
            "diff": "Show what changed between two runs, and whether it matters.",
        },
        "Several ranks": {
            "ranks": "Show which rank makes the others wait, why, and how much a fix saves.",
        },
        "Run benchmarks": {
            "bench": "Time functions and commands on devices, and compare results.",
            "tune": "Search for the best variant of a program or function.",
            "repro": "Write a script that runs one operator alone with its recorded inputs.",
            "devices": "List the devices of this machine, their state, and who uses them.",
        },
        "Convert and exchange files": {
            "convert": "Write traces, parts of them and tables to files for other programs.",
            "chakra": "Check, show and replay Chakra graphs (.et).",
            "tunableop": "Read, check, merge, split and tune PyTorch's TunableOp files.",
        },
        "Learn and automate": {
            "demo": "Write example traces, explain one, and show what to ask next.",
            "mcp": "Answer agents' questions about the traces in some folders (MCP).",
        },
    }
    for_programs: ClassVar = {
        "guide": "Print one page that explains longpole to an agent.",
        "schema": "Print the JSON Schema of the answer of a command.",
        "completion": "Print a shell script that completes commands and options.",
    }
    unknown = "neither a command nor a file"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Accept `FILE` and `--format json FILE` as arguments of `summary`."""
        others = (place for place, text in enumerate(args) if text not in _OPTIONS_BEFORE_A_COMMAND)
        first = next(others, None)
        if first is not None and (self._is_file(args[first]) or args[first].startswith("-")):
            command = "table" if self._names_table(args[first:]) else "summary"
            args = [*args[:first], command, *args[first:]]
        return super().parse_args(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in _STARTS_PROGRAMS:
            # numpy's BLAS, which is not used here, starts a thread on every core, and each spins
            # for a tenth of a second.
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        return super().get_command(ctx, cmd_name)

    def advice(self, name: str) -> str:
        """Suggest what may have been meant, for example a table."""
        from longpole.cli.answer.table import tables

        is_table = name in tables()
        return f"did you mean `longpole TRACE {name}`?" if is_table else super().advice(name)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands, and files, since a file may replace a command."""
        found = super().shell_complete(ctx, incomplete)
        return found or [CompletionItem(incomplete, type="file")]

    def _names_table(self, args: Sequence[str]) -> bool:
        """Whether the arguments of a file name a table, as in `longpole TRACE kernels`."""
        from longpole.cli.answer.table import tables

        if not any(text in tables() for text in args):
            return False
        from longpole.cli.table import named_table

        return named_table(args) is not None

    def _is_file(self, text: str) -> bool:
        """Whether a first argument is a file: it exists, or looks like a path."""
        return text not in self.helps and ("." in text or os.sep in text or Path(text).exists())


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(None, "-V", "--version", package_name="longpole")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def longpole(*, debug: bool) -> None:
    """Find what a GPU program waits for.

    `longpole TRACE` is short for `longpole summary TRACE`, and `longpole TRACE kernels` for
    `longpole table TRACE kernels`.

    \b
    Examples:
      longpole demo                           the answers about an example
      longpole trace.json.gz                  what limits the program
      longpole trace.json.gz kernels          one of the tables
      longpole summary trace.json.gz --step 3 --format json
      longpole check rank*.json.gz            the problems of the traces
    """


def main() -> None:
    """Run the command line and end the process with its exit code."""
    _open_closed_streams()
    # The rows of an answer live until its end: a search for cycles among them finds none.
    gc.set_threshold(_NEW_OBJECTS)
    instruction = os.environ.get(_COMPLETION)
    if instruction:
        sys.exit(shell_complete(longpole, {}, "longpole", _COMPLETION, instruction))
    sys.exit(run(sys.argv[1:]))


def _open_closed_streams() -> None:
    """Open an empty file for each closed standard stream.

    Otherwise the next opened file would get its number, and receive the output of libraries to
    stdout or stderr.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # uses the lowest free number
    for name, mode in {"stdin": "r", "stdout": "w", "stderr": "w"}.items():
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def run(arguments: Sequence[str]) -> int:
    """Run the command line; return its exit code."""
    try:
        with (
            longpole.make_context("longpole", list(arguments)) as context,
            inputs_protected(given_files),
        ):
            code: Any = longpole.invoke(context)
            sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.Abort, KeyboardInterrupt):
        return exit_codes.INTERRUPTED
    except (ClosedPipeError, BrokenPipeError):
        _leave_stdout()
        return exit_codes.OK
    except Exception as error:  # noqa: BLE001 (no traceback without --debug)
        return _fail(error, arguments)
    return code if isinstance(code, int) else exit_codes.OK


def _fail(error: Exception, arguments: Sequence[str]) -> int:
    """Report the error that ended the program, also as JSON if requested."""
    if "--debug" in arguments:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return exit_codes.USAGE
    if isinstance(error, click.NoSuchOption):
        error = with_suggestion(error)
    problem = Problem.of(error)
    form = _form(arguments)
    answer = failed("longpole.error/1", problem)
    if form in ("json", "jsonl"):
        from longpole.report.text import Terminal

        try:
            emit([answer], form, Terminal())
        except OSError:
            # A failed write to stdout, as on a full disk, has already been reported on stderr.
            return problem.exit_code
        except ClosedPipeError:
            _leave_stdout()
    return problem.exit_code


def _leave_stdout() -> None:
    """Redirect stdout after its reader has closed it, so that flushing at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _form(arguments: Sequence[str]) -> str:
    """Find the format in arguments that could not be parsed."""
    text = " ".join(arguments).replace("=", " ")
    if "--format jsonl" in text:
        return "jsonl"
    if "--format json" in text or "--json" in arguments:
        return "json"
    return os.environ.get("LONGPOLE_FORMAT", "text")
