"""Reads files that are read at once, plain or gzip."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import os

__all__ = ["MAGIC", "content", "first_bytes"]

MAGIC: Final = b"\x1f\x8b"


def first_bytes(path: str | os.PathLike[str], number: int) -> bytes:
    """Give the first bytes of what a file holds; as they are where they cannot be unpacked."""
    with Path(path).open("rb") as file:
        head = file.read(number)
    if not head.startswith(MAGIC):
        return head
    try:
        with gzip.open(path) as unpacked:
            return unpacked.read(number)
    except (OSError, EOFError, zlib.error):
        return head


def content(path: str | os.PathLike[str]) -> bytes:
    """Give what a file holds.

    Raises
    ------
    ValueError
        It is gzip that is cut or corrupt.
    """
    held = Path(path).read_bytes()
    if not held.startswith(MAGIC):
        return held
    try:
        return gzip.decompress(held)
    except (OSError, EOFError, zlib.error) as error:
        message = f"the gzip stream is cut or corrupt ({error})"
        raise ValueError(message) from error
