"""The verbs, and what all of them do with errors, Ctrl-C and closed pipes."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli import exit_codes
from longpole.cli.output import ClosedPipeError, Document, emit
from longpole.cli.problems import Problem
from longpole.cli.terminal import Terminal
from longpole.cli.verbs import Verbs

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main", "run"]

# Each verb with the line that `--help` shows for it; the module has a function of
# the same name. The text stands here so that the module need not be imported.
VERBS: Final = {
    "summary": "Say where the time of a step went, and what it waited for most.",
    "path": "Show the critical path: what decided when a step was over.",
    "whatif": "Say how long a step would take if something were different.",
    "table": "Print one of the tables behind the answers.",
    "check": "Say what is wrong with a trace, and what that costs an analysis.",
    "link": "Give an execution trace the times of the Kineto trace of the same run.",
    "chakra": "Write, show, check and replay Chakra graphs (.et).",
    "bench": "Run benchmarks on devices, and choose and compare their results.",
    "devices": "List the devices of this machine: how they are, and who uses them.",
}

_OPTIONS_BEFORE_A_VERB: Final = {"-h", "--help", "-V", "--version", "--debug"}


class Program(Verbs):
    """The group of verbs; a file in place of a verb means `summary`."""

    helps = VERBS
    module_prefix = "longpole.cli."
    unknown = "neither a verb nor a file"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take `FILE` and `--format json FILE` for `summary` of them."""
        first = next((n for n, text in enumerate(args) if text not in _OPTIONS_BEFORE_A_VERB), None)
        if first is not None and (_is_file(args[first]) or args[first].startswith("-")):
            args = [*args[:first], "summary", *args[first:]]
        return super().parse_args(ctx, args)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(None, "-V", "--version", package_name="longpole")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def longpole(*, debug: bool) -> None:
    """Find what a GPU program waits for.

    \b
    Examples:
      longpole trace.json.gz                  where the time of a step went
      longpole summary trace.json.gz --step 3 --format json
      longpole check rank*.json.gz            what is wrong with the traces
    """


def main() -> None:
    """Run the command line and end the process with its exit code."""
    if sys.stdout is None:
        # Somebody closed it; what is written then goes nowhere.
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run the command line; give its exit code."""
    try:
        with longpole.make_context("longpole", list(arguments)) as context:
            code: Any = longpole.invoke(context)
            sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.Abort, KeyboardInterrupt):
        return exit_codes.INTERRUPTED
    except (ClosedPipeError, BrokenPipeError):
        # Nobody reads any more; flushing at exit must not complain about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_codes.OK
    except Exception as error:  # noqa: BLE001 (no traceback without --debug)
        return _fail(error, arguments)
    return code if isinstance(code, int) else exit_codes.OK


def _fail(error: Exception, arguments: Sequence[str]) -> int:
    """Tell the user what ended the program, as JSON too where JSON was asked for."""
    if "--debug" in arguments:
        traceback.print_exception(error)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return exit_codes.USAGE
    problem = Problem.of(error)
    form = _form(arguments)
    if form not in ("json", "jsonl"):
        problem.show()
        return problem.exit_code
    try:
        return emit([Document.of_problem("longpole.error/1", problem)], form, Terminal())
    except OSError:
        # What cannot be written to stdout, a full disk for one, is told on stderr.
        problem.show()
        return problem.exit_code


def _form(arguments: Sequence[str]) -> str:
    """Find the format in arguments that could not be parsed."""
    text = " ".join(arguments).replace("=", " ")
    if "--format jsonl" in text:
        return "jsonl"
    if "--format json" in text or "--json" in arguments:
        return "json"
    return os.environ.get("LONGPOLE_FORMAT", "text")


def _is_file(text: str) -> bool:
    """Whether a first argument is meant for a file: it is there, or looks like a path."""
    return text not in VERBS and ("." in text or os.sep in text or Path(text).exists())
