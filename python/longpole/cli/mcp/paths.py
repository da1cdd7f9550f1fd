"""Which files an agent may ask about: those of the folders that the user named."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["checked", "traces_in"]


def checked(path: object, folders: Sequence[Path]) -> str:
    """Give the real path of a file or folder.

    A relative path is looked for in each folder.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    PermissionError
        It lies outside the folders, or a link below it leads outside.
    """
    roots = [folder.resolve() for folder in folders]
    named = [(root / str(path)).resolve() for root in roots]
    inside = [one for one in named if _is_in(one, roots)]
    if not inside:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    found = next((one for one in inside if one.exists()), None)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if not all(_is_in(one, roots) for one in _below(found, roots)):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return str(found)


def traces_in(folders: Sequence[Path], most: int) -> list[dict[str, Any]]:
    """List files of the folders, the largest first."""
    roots = [folder.resolve() for folder in folders]
    files = {path for root in roots for path in _below(root, roots) if _is_in(path, roots)}
    sized = [(path.stat().st_size, str(path)) for path in files if path.is_file()]
    return [{"path": path, "bytes": size} for size, path in sorted(sized, reverse=True)[:most]]


def _below(folder: Path, roots: Sequence[Path]) -> Iterator[Path]:
    """Give the real paths of all that a folder holds, also behind links within the roots."""
    seen = {folder.resolve()}
    for parent, folders, files in os.walk(folder, followlinks=True):
        found = {name: Path(parent, name).resolve() for name in folders}
        yield from found.values()
        yield from (Path(parent, name).resolve() for name in files)
        folders[:] = [
            name for name in folders if found[name] not in seen and _is_in(found[name], roots)
        ]
        seen.update(found.values())


def _is_in(path: Path, roots: Sequence[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)
