"""Opens and reads inputs, plain or gzip: regular files, and pipes that the user named.

Every file from a user or a profiler is opened here, so that devices and sockets are refused, and a
pipe next to a trace cannot block a program forever. A process confined to folders (`longpole mcp`)
opens only files inside them.
"""

from __future__ import annotations

import gzip
import os
import zlib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

_Path = str | os.PathLike[str]
_HAS_DESCRIPTORS: Final = os.name == "posix"
MAGIC: Final = b"\x1f\x8b"
_BINARY: Final = {
    MAGIC: "compressed with gzip",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"\xfd7zXZ\0": "compressed with xz",
    b"PK\x03\x04": "a ZIP archive",
    b"SQLite format 3\0": "a database of SQLite",
}
"""What files that are not text are, by their first bytes."""


def open_file(path: _Path, *, is_named: bool = True) -> BinaryIO:
    """Open a file for reading.

    Parameters
    ----------
    path
        The file.
    is_named
        Whether the user named this file. A pipe or a terminal is read only if it was named.

    Raises
    ------
    OSError
        The file cannot be opened, is a directory, a device or a socket, or lies outside the
        folders to which the process is confined.
    """
    if not _HAS_DESCRIPTORS:
        return Path(path).open("rb")
    from longpole._core import open_file as open_in_core

    descriptor = open_in_core(path, is_named=is_named)
    return cast("BinaryIO", os.fdopen(descriptor, "rb"))


def read_bytes(path: _Path, *, is_named: bool = True) -> bytes:
    """Read a whole file."""
    with open_file(path, is_named=is_named) as file:
        return file.read()


def read_text(path: _Path, *, is_named: bool = True, errors: str = "strict") -> str:
    """Read a whole file of UTF-8 text; line ends become line feeds."""
    text = read_bytes(path, is_named=is_named).decode("utf-8", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def names_in(folder: _Path) -> list[str]:
    """List the names in a folder, sorted.

    Raises
    ------
    OSError
        The folder cannot be opened, or lies outside the folders to which the process is confined.
    """
    if not _HAS_DESCRIPTORS:
        return sorted(path.name for path in Path(folder).iterdir())
    from longpole._core import open_folder

    descriptor = open_folder(folder)
    try:
        return sorted(os.listdir(descriptor))  # noqa: PTH208 - a path would be opened a second time
    finally:
        os.close(descriptor)


def matching(folder: _Path, pattern: str) -> list[Path]:
    """List the paths in a folder whose names match a pattern, as `Path.glob` does.

    Empty if it is not a folder, or cannot be opened.
    """
    try:
        return [path for path in entries(folder) if fnmatchcase(path.name, pattern)]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def entries(folder: _Path) -> Iterator[Path]:
    """Yield the paths in a folder, sorted by name."""
    return map(Path(folder).joinpath, names_in(folder))


def first_bytes(path: str | os.PathLike[str], number: int) -> bytes:
    """Return the first bytes of a file, decompressed if possible.

    Empty for a pipe: what is read from it is gone.
    """
    if is_pipe(path):
        return b""
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


def is_pipe(path: _Path) -> bool:
    """Whether a path is a pipe, such as `/dev/stdin` of a pipeline, or `-`."""
    return os.fspath(path) == "-" or Path(path).is_fifo()


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
    if (what := binary_kind(held)) is not None:
        message = f"it is {what}, not text"
        raise ValueError(message)
    if len(held) > most_bytes:
        message = f"it is larger than {most_bytes:,} bytes"
        raise ValueError(message)
    try:
        return held.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"byte {error.start:,} is not text (UTF-8)"
        raise ValueError(message) from error


def binary_kind(head: bytes) -> str | None:
    r"""Return what a file is, by its first bytes; None if it may be text.

    Examples
    --------
    >>> binary_kind(b"SQLite format 3\0"), binary_kind(b"time_ns\n")
    ('a database of SQLite', None)
    """
    return next((what for start, what in _BINARY.items() if head.startswith(start)), None)
