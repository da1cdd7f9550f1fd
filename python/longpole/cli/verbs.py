"""A group of verbs whose modules are imported only when they are called."""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import ClassVar

import click

__all__ = ["Verbs"]


class Verbs(click.Group):
    """Verbs by name; each is a function of its name in a module of its own.

    The line that `--help` shows for a verb stands with the group, so that help need
    not import what the verb needs.
    """

    helps: ClassVar[dict[str, str]]
    """The verbs with their lines, in the order one would want them."""

    module_prefix: ClassVar[str]
    """What stands before the verb in the name of its module."""

    unknown: ClassVar[str] = "no verb"
    """What a first argument is that is none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Name every verb."""
        return list(self.helps)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a verb."""
        if cmd_name not in self.helps:
            return None
        module = import_module(f"{self.module_prefix}{cmd_name}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.helps.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a verb, or say which was meant."""
        if args and args[0] not in self.helps:
            meant = difflib.get_close_matches(args[0], self.helps, n=1)
            there_are = f"there are {', '.join(self.helps)}"
            advice = f"did you mean `{meant[0]}`?" if meant else there_are
            message = f"{args[0]!r} is {self.unknown}; {advice}"
            raise click.UsageError(message, ctx)
        return super().resolve_command(ctx, args)
