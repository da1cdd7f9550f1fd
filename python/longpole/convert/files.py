"""Writing a file whole or not at all, and never over another one unasked."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["written_whole"]


@contextmanager
def written_whole(path: str | os.PathLike[str], *, overwrite: bool) -> Iterator[Path]:
    """Give a file beside `path` to write to, which takes its place when all is well.

    Raises
    ------
    FileExistsError
        There is a file already, and `overwrite` is not set.
    """
    path = Path(path)
    if path.exists() and not overwrite:
        raise FileExistsError(17, "the file exists; overwrite=True replaces it", str(path))
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        temporary = Path(file.name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        if overwrite:
            temporary.replace(path)
        else:
            path.hardlink_to(temporary)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
