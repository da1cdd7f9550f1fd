"""The verbs, and what all of them do with errors, Ctrl-C and closed pipes."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click

from longpole.cli import exit_codes

__all__ = ["main"]

# Each verb with the line that `--help` shows for it; the module has a function of
# the same name. The text stands here so that the module need not be imported.
VERBS: Final = {
    "summary": "Say where the time of a step went, and what it waited for most.",
    "check": "Say what is wrong with a trace, and what that costs an analysis.",
}


class Program(click.Group):
    """The group of verbs; a file in place of a verb means `summary`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Name every verb, in the order one would want them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a verb."""
        if cmd_name not in VERBS:
            return None
        module = import_module(f"longpole.cli.{cmd_name}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Take a file for `summary FILE`."""
        if args and args[0] not in VERBS and (args[0] == "-" or Path(args[0]).exists()):
            args = ["summary", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(None, "-V", "--version", package_name="longpole")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def longpole(debug: bool) -> None:  # noqa: FBT001, ARG001
    """Find what a GPU program waits for.

    \b
    Example:
      longpole summary trace.json.gz
    """


def main() -> None:
    """Run the command line and end the process with its exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the command line; give its exit code."""
    try:
        code: Any = longpole.main(arguments, prog_name="longpole", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return exit_codes.USAGE
    except (click.Abort, KeyboardInterrupt):
        return exit_codes.INTERRUPTED
    except BrokenPipeError:
        # Nobody reads any more; flushing at exit must not complain about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_codes.OK
    return code if isinstance(code, int) else exit_codes.OK
