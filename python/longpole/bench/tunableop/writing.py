"""Files that are written whole or not at all, and never over another one unless told to."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["refuse_existing", "write_whole"]


def refuse_existing(*paths: Path) -> None:
    """Stop where a file would be written over.

    Raises
    ------
    FileExistsError
        One of them is there already.
    """
    for path in paths:
        if path.exists() or path.is_symlink():
            message = f"{path} is there already and is not written over"
            raise FileExistsError(message)


def write_whole(path: Path, content: bytes, *, force: bool = False) -> None:
    """Write a file under another name first, so that nobody ever sees half of it.

    Raises
    ------
    FileExistsError
        The file is there already and `force` is not given.
    """
    if not force:
        refuse_existing(path)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    written = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        written.chmod(_mode_of(path))
        if force:
            written.replace(path)
        else:
            path.hardlink_to(written)  # fails where a file has appeared since, as a rename does not
    finally:
        written.unlink(missing_ok=True)


def _mode_of(path: Path) -> int:
    """Keep the permissions of a file that is replaced; a new one is as `open` makes it."""
    try:
        return path.stat().st_mode & 0o7777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
