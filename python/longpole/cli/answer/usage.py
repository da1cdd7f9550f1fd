"""Usage errors of commands."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["require", "usage_errors"]


def require(condition: object, message: str) -> None:
    """Raise a usage error unless a condition holds."""
    if not condition:
        raise click.UsageError(message)


@contextmanager
def usage_errors(kind: type[ValueError] = ValueError) -> Iterator[None]:
    """Convert errors of this kind to usage errors within the context."""
    try:
        yield
    except kind as error:
        raise click.UsageError(str(error)) from error
