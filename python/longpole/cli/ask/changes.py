"""The options for hypothetical changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from longpole.cli.answer.usage import require, usage_errors
from longpole.critical_path.changes import Drop, RemoveWait, Scale

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from longpole.critical_path.changes import Change

__all__ = ["change_options", "changes_of"]

_OPTIONS = "--scale, --drop and --remove-wait"


def change_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add `--scale`, `--drop` and `--remove-wait` to a command."""
    scale = click.option(
        "--scale",
        multiple=True,
        metavar="WHAT=FACTOR",
        help="Multiply the time of WHAT, such as kernel:gemm=0.5.",
    )
    drop = click.option("--drop", multiple=True, metavar="WHAT", help="Set the time of WHAT to 0.")
    remove_wait = click.option(
        "--remove-wait",
        multiple=True,
        metavar="WHAT",
        help="Remove the waits of WHAT, such as sync_return or event_wait:nccl.",
    )
    return scale(drop(remove_wait(command)))


def changes_of(asked: Mapping[str, Sequence[str]], *, ideal: bool) -> list[Change]:
    """Return the requested changes."""
    with usage_errors():
        changes: list[Change] = [
            *(
                Scale(by=by, kind=kind, matching=name)
                for kind, name, by in map(_scaled, asked["scale"])
            ),
            *(Drop(kind=kind, matching=name) for kind, name in map(_what, asked["drop"])),
            *(
                RemoveWait(kind=kind or "sync_return", matching=name)
                for kind, name in map(_what, asked["remove_wait"])
            ),
        ]
    require(not (ideal and changes), f"--ideal tries its own changes; leave out {_OPTIONS}")
    require(ideal or changes, f"give a change with {_OPTIONS}, or use --ideal")
    return changes


def _scaled(text: str) -> tuple[Any, str | None, float]:
    what, equals, factor = text.rpartition("=")
    try:
        by = float(factor)
    except ValueError:
        equals = ""
    if not equals:
        message = f"{text!r} has no factor; give one, as in `kernel:gemm=0.5`"
        raise click.BadParameter(message, param_hint="'--scale'")
    return (*_what(what), by)


def _what(text: str) -> tuple[Any, str | None]:
    """Split `KIND:PATTERN`; either part may be missing."""
    if not text:
        message = "give a kind, or `kind:pattern`"
        raise click.UsageError(message)
    kind, _, pattern = text.partition(":")
    return kind or None, pattern or None
