"""Groups of commands, which are listed by name and imported when they are called."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

import click

from longpole.cli.ask.suggestions import closest

if TYPE_CHECKING:
    from collections.abc import Mapping


class Commands(click.Group):
    """The commands of a folder; help and completion of their names import none of them."""

    folder: ClassVar[str]
    """The package with a module for each command."""

    sections: ClassVar[Mapping[str, Mapping[str, str]]]
    """Headings of `--help`, with the commands below them and their descriptions."""

    for_programs: ClassVar[Mapping[str, str]] = {}
    """Commands below the others, on one line of `--help`, and their descriptions."""

    modules: ClassVar[Mapping[str, str]] = {}
    """Modules of commands that share one, by command."""

    unknown: ClassVar[str] = "not a command"
    """Message for an unknown first argument."""

    @cached_property
    def helps(self) -> dict[str, str]:
        """Commands and their descriptions, sorted by name."""
        groups = (*self.sections.values(), self.for_programs)
        listed = (item for section in groups for item in section.items())
        return dict(sorted(listed))

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of all commands."""
        return list(self.helps)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        if cmd_name not in self.helps:
            return None
        module = import_module(f"{self.folder}.{self.modules.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        width = max(map(len, self.helps))
        for heading, commands in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])
        if self.for_programs:
            with formatter.section("For scripts and agents"):
                formatter.write_text(", ".join(self.for_programs))

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
        return closest(name, self.helps, f"the commands are {', '.join(self.helps)}")
