"""Reads whole files, plain or gzip."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING, Final

from longpole.opening import open_file, read_bytes

if TYPE_CHECKING:
    import os

__all__ = ["MAGIC", "content", "first_bytes", "short_text"]

MAGIC: Final = b"\x1f\x8b"


def first_bytes(path: str | os.PathLike[str], number: int) -> bytes:
    """Return the first bytes of a file, decompressed if possible."""
    with open_file(path) as file:
        head = file.read(number)
        if not head.startswith(MAGIC):
            return head
        try:
            file.seek(0)
            with gzip.open(file) as unpacked:
                return unpacked.read(number)
        except (OSError, EOFError, zlib.error):
            return head


def content(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file, decompressed.

    Raises
    ------
    ValueError
        The gzip stream is truncated or corrupt.
    """
    held = read_bytes(path)
    if not held.startswith(MAGIC):
        return held
    try:
        return gzip.decompress(held)
    except (OSError, EOFError, zlib.error) as error:
        message = f"the gzip stream is cut or corrupt ({error})"
        raise ValueError(message) from error


def short_text(path: str | os.PathLike[str], *, most_bytes: int) -> str:
    """Return the text of a file that should be small, reading no more than its limit.

    Raises
    ------
    ValueError
        The file is larger, or is not UTF-8.
    OSError
        The file cannot be read.
    """
    with open_file(path) as file:
        held = file.read(most_bytes + 1)
    if len(held) > most_bytes:
        message = f"{path} is larger than {most_bytes:,} bytes"
        raise ValueError(message)
    return held.decode("utf-8")
