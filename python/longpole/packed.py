"""Reads files that are read at once, plain or gzip."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING, Final

from longpole.opening import open_file, read_bytes

if TYPE_CHECKING:
    import os

__all__ = ["content", "first_bytes"]

_MAGIC: Final = b"\x1f\x8b"


def first_bytes(path: str | os.PathLike[str], number: int) -> bytes:
    """Return the first bytes of a file, unpacked; as they are if they cannot be unpacked."""
    with open_file(path) as file:
        head = file.read(number)
        if not head.startswith(_MAGIC):
            return head
        try:
            file.seek(0)
            with gzip.open(file) as unpacked:
                return unpacked.read(number)
        except (OSError, EOFError, zlib.error):
            return head


def content(path: str | os.PathLike[str]) -> bytes:
    """Return what a file holds, unpacked.

    Raises
    ------
    ValueError
        It is gzip that is cut or corrupt.
    """
    held = read_bytes(path)
    if not held.startswith(_MAGIC):
        return held
    try:
        return gzip.decompress(held)
    except (OSError, EOFError, zlib.error) as error:
        message = f"the gzip stream is cut or corrupt ({error})"
        raise ValueError(message) from error
