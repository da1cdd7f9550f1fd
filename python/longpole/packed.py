"""Reads files that are read at once, plain or gzip."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import os

__all__ = ["content", "first_bytes", "short_text"]

_MAGIC: Final = b"\x1f\x8b"


def first_bytes(path: str | os.PathLike[str], number: int) -> bytes:
    """Give the first bytes of what a file holds; as they are where they cannot be unpacked."""
    with Path(path).open("rb") as file:
        head = file.read(number)
    if not head.startswith(_MAGIC):
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
    if not held.startswith(_MAGIC):
        return held
    try:
        return gzip.decompress(held)
    except (OSError, EOFError, zlib.error) as error:
        message = f"the gzip stream is cut or corrupt ({error})"
        raise ValueError(message) from error


def short_text(path: str | os.PathLike[str], *, most_bytes: int) -> str:
    """Return the text of a file that is small by its nature; nothing more of it is read.

    Raises
    ------
    ValueError
        The file is larger, or is not UTF-8.
    OSError
        The file cannot be read.
    """
    with Path(path).open("rb") as file:
        held = file.read(most_bytes + 1)
    if len(held) > most_bytes:
        message = f"{path} is larger than {most_bytes:,} bytes"
        raise ValueError(message)
    return held.decode("utf-8")
