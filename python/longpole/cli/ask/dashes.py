"""The part of a command line after `--`."""

from __future__ import annotations

from typing import Final

import click

__all__ = ["CommandBehindDashes", "behind_dashes"]

_BEHIND: Final = "after --"


class CommandBehindDashes(click.Command):
    """Keeps what follows `--` separate: it is a command to run, never an argument."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Cut the arguments at the first `--`."""
        if "--" in args:
            middle = args.index("--")
            args, ctx.meta[_BEHIND] = args[:middle], args[middle + 1 :]
        return super().parse_args(ctx, args)


def behind_dashes() -> list[str] | None:
    """Return what follows `--` on this command line; None without `--`."""
    found: list[str] | None = click.get_current_context().meta.get(_BEHIND)
    return found
