"""Writes a file as a whole or not at all, and never over what is to be kept."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["check_free", "new_file"]


@contextmanager
def new_file(
    path: Path, *, force: bool = False, inputs: Sequence[Path] = (), private: bool = False
) -> Iterator[Path]:
    """Give a temporary path to write to, which takes the name `path` when all is written.

    Parameters
    ----------
    path
        The file to write.
    force
        Replace the file if it exists.
    inputs
        Files that are never replaced, whatever `force` says, under any of their names. Nor are
        files in a folder that is named here.
    private
        Let only its owner read the file, and let it be on disk before it takes its name.

    Raises
    ------
    FileExistsError
        The file exists and `force` is not given, it is one of the inputs, or it is no plain file:
        devices, pipes and sockets are never replaced.
    FileNotFoundError
        There is no such folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with new_file(Path(folder, "answer.txt")) as unfinished:
    ...         _ = unfinished.write_text("42")
    ...     [file.name for file in Path(folder).iterdir()]
    ['answer.txt']
    """
    import tempfile  # only who writes a file waits for it

    check_free(path, force=force, inputs=inputs)
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(descriptor)
    unfinished = Path(name)
    try:
        yield unfinished
        if private:
            _see_to_disk(unfinished)
        else:
            unfinished.chmod(0o666 & ~_umask())
        check_free(path, force=force, inputs=inputs)
        if private and not force:
            path.hardlink_to(unfinished)  # fails where there is a file, as a rename would not
        else:
            unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def check_free(path: Path, *, force: bool = False, inputs: Sequence[Path] = ()) -> None:
    """Refuse a name that `new_file` would refuse, before work is done for it.

    Raises
    ------
    FileExistsError
        As of `new_file`.
    """
    if not path.exists():
        return
    for each in inputs:
        if not each.exists():
            continue
        if path.samefile(each):
            message = f"{path} is an input, which is never replaced"
            raise FileExistsError(message)
        if each.is_dir() and path.resolve().is_relative_to(each.resolve()):
            message = f"{path} lies in the folder that is read, whose files are never replaced"
            raise FileExistsError(message)
    if not path.is_file():
        message = f"{path} is no plain file, and is never replaced"
        raise FileExistsError(message)
    if not force:
        message = f"{path} exists; to replace it, use -f (force=True in Python)"
        raise FileExistsError(message)


def _see_to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
