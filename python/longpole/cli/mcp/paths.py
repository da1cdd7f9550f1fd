"""The files that an agent may ask about: those of the folders that the user gave."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Any

from longpole.opening import names_in, open_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["checked", "traces_in"]


def checked(path: str, folders: Sequence[Path]) -> str:
    """Return the real path of a file or folder.

    A relative path is searched in each folder.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    PermissionError
        The file is outside the folders, or a link below it leads outside.
    """
    roots = [folder.resolve() for folder in folders]
    named = [(root / path).resolve() for root in roots]
    inside = [one for one in named if _is_in(one, roots)]
    if not inside:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    found = next((one for one in inside if one.exists()), None)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if found.is_dir() and not all(_is_in(one.resolve(), roots) for one in _below(found, roots)):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    return str(found)


def traces_in(folders: Sequence[Path], most: int) -> tuple[list[dict[str, Any]], int]:
    """List the regular files of the folders, largest first, and return their total number."""
    roots = [folder.resolve() for folder in folders]
    found = {path.resolve() for root in roots for path in _below(root, roots)}
    sized = [(size, str(path)) for path in found if (size := _size(path)) is not None]
    rows = [{"path": path, "bytes": size} for size, path in sorted(sized, reverse=True)[:most]]
    return rows, len(sized)


def _below(folder: Path, roots: Sequence[Path]) -> Iterator[Path]:
    """Yield all paths in a folder, following links that stay within the roots."""
    seen, waiting = {folder}, [folder]
    while waiting:
        parent = waiting.pop()
        for name in _names(parent):
            path = parent / name
            yield path
            real = path.resolve()
            if real not in seen and _is_in(real, roots) and real.is_dir():
                seen.add(real)
                waiting.append(real)


def _names(folder: Path) -> list[str]:
    try:
        return names_in(folder)
    except OSError:  # no permission, or replaced since
        return []


def _size(path: Path) -> int | None:
    """Return the size of a regular file; None for anything else."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        with open_file(path, is_named=False) as file:
            return os.fstat(file.fileno()).st_size
    except OSError:
        return None


def _is_in(path: Path, roots: Sequence[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)
