"""What commands say of wrong use, and the part of a command line behind `--`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CommandBehindDashes", "behind_dashes", "require", "usage_errors"]

_BEHIND: Final = "behind --"


def require(condition: object, message: str) -> None:
    """Refuse what the user has given unless a condition holds."""
    if not condition:
        raise click.UsageError(message)


@contextmanager
def usage_errors(kind: type[ValueError] = ValueError) -> Iterator[None]:
    """Let such an error be a mistake of the user."""
    try:
        yield
    except kind as error:
        raise click.UsageError(str(error)) from error


class CommandBehindDashes(click.Command):
    """Keeps what stands behind `--` apart: it is a command, never an argument of this one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Cut the arguments at the first `--`."""
        if "--" in args:
            middle = args.index("--")
            args, ctx.meta[_BEHIND] = args[:middle], args[middle + 1 :]
        return super().parse_args(ctx, args)


def behind_dashes() -> list[str] | None:
    """Give what stands behind `--` on this command line; None where there is no `--`."""
    found: list[str] | None = click.get_current_context().meta.get(_BEHIND)
    return found
