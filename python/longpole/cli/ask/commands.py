"""Groups of commands: one file each, found in a folder and imported when called."""

from __future__ import annotations

import difflib
import re
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import ClassVar, Final

import click

__all__ = ["Commands"]

_FIRST_LINE: Final = re.compile(r'"""`longpole (?:[a-z]+ )?(?P<name>[a-z]+)`: (?P<help>.+)')


class Commands(click.Group):
    """The commands of a folder: each file that begins with "`longpole NAME`: ...".

    The file has a command of that name. The rest of its first line is shown in `--help`, so that
    help does not import the command.
    """

    folder: ClassVar[str]
    """The package to search."""

    sections: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Headings of `--help` with the commands below them; the first also has all others."""

    unknown: ClassVar[str] = "not a command"
    """Message for an unknown first argument."""

    @cached_property
    def helps(self) -> dict[str, str]:
        """Commands and their descriptions."""
        [path] = import_module(self.folder).__path__
        modules = sorted([*Path(path).glob("*.py"), *Path(path).glob("*/__init__.py")])
        first_lines = (_first_line(module) for module in modules)
        found = filter(None, map(_FIRST_LINE.match, first_lines))
        own = self.folder.rpartition(".")[2]
        helps = {match["name"]: _sentence(match["help"]) for match in found}
        helps.pop(own, None)
        return dict(sorted(helps.items()))

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of all commands."""
        return list(self.helps)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        if cmd_name not in self.helps:
            return None
        module = import_module(f"{self.folder}.{cmd_name}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        sections = self.sections or {"Commands": ()}
        placed = {name for names in sections.values() for name in names}
        others = tuple(name for name in self.helps if name not in placed)
        width = max(map(len, self.helps))
        for heading, names in sections.items():
            more = others if heading == next(iter(sections)) else ()
            with formatter.section(heading):
                rows = [(name.ljust(width), self.helps[name]) for name in (*names, *more)]
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or suggest one."""
        if args and args[0] not in self.helps:
            message = f"{args[0]!r} is {self.unknown}; {self.advice(args[0])}"
            raise click.UsageError(message, ctx)
        return super().resolve_command(ctx, args)

    def advice(self, name: str) -> str:
        """Suggest what may have been meant by an unknown name."""
        meant = difflib.get_close_matches(name, self.helps, n=1)
        there_are = f"the commands are {', '.join(self.helps)}"
        return f"did you mean `{meant[0]}`?" if meant else there_are


def _first_line(module: Path) -> str:
    with module.open(encoding="utf-8") as lines:
        return lines.readline().rstrip().removesuffix('"""')


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
