"""Writes files completely or not at all, and never replaces input files.

Every file that longpole writes goes through `new_file`, and files that it appends to go through
`check_no_input`. In addition to the inputs that a function lists, both refuse those of
`inputs_protected`, which the command line sets to all files given to a command.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)
_NO_SPACE_TEXT: Final = os.strerror(errno.ENOSPC)
_ABANDONED_S: Final = 60
"""Age from which an unfinished file without a writer belongs to a run that was killed."""


def _no_inputs() -> list[Path]:
    return []


_protected: Final[ContextVar[Callable[[], Iterable[Path]]]] = ContextVar(
    "inputs that are never replaced", default=_no_inputs
)


@contextmanager
def new_file(
    path: Path, *, force: bool = False, inputs: Sequence[Path] = (), private: bool = False
) -> Iterator[Path]:
    """Yield a temporary path, which is renamed to `path` when everything is written.

    Parameters
    ----------
    path
        The file to write.
    force
        Replace the file if it exists.
    inputs
        Files that are never replaced, even with `force`, under any of their names. The same holds
        for files in a folder listed here.
    private
        Make the file readable only by its owner, and sync it to disk before the rename.

    Raises
    ------
    FileExistsError
        The file exists and `force` is not given, it is one of the inputs, or it is not a regular
        file: devices, pipes and sockets are never replaced.
    FileNotFoundError
        The folder does not exist.
    OSError
        The file cannot be written, such as on a full disk; the error names the file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with new_file(Path(folder, "answer.txt")) as unfinished:
    ...         _ = unfinished.write_text("42")
    ...     [file.name for file in Path(folder).iterdir()]
    ['answer.txt']
    """
    import tempfile  # only needed to write a file

    check_free(path, force=force, inputs=inputs)
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    _remove_abandoned(path)
    with _naming(path):
        descriptor, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name}.", suffix=".part"
        )
    held = _held(descriptor)
    unfinished = Path(name)
    try:
        with _naming(path):
            yield unfinished
        if private:
            _see_to_disk(unfinished)
        else:
            unfinished.chmod(0o666 & ~_umask())
        check_free(path, force=force, inputs=inputs)
        if private and not force:
            path.hardlink_to(unfinished)  # fails if the file exists, unlike a rename
        else:
            unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
        if held is not None:
            os.close(held)


@contextmanager
def new_files(
    paths: Iterable[Path], *, force: bool = False, inputs: Sequence[Path] = ()
) -> Iterator[list[Path]]:
    """Yield a temporary path for each file; all are renamed when all are written, else none.

    The parameters and errors are those of `new_file`.
    """
    with ExitStack() as stack:
        yield [stack.enter_context(new_file(path, force=force, inputs=inputs)) for path in paths]


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Add the file to the error of a full disk, for which libraries have errors of their own."""
    try:
        yield
    except Exception as error:
        number = error.errno if isinstance(error, OSError) else None
        if number in _NO_SPACE or (number is None and _NO_SPACE_TEXT in str(error)):
            number = number or errno.ENOSPC
            raise OSError(number, os.strerror(number), str(path)) from error
        raise


def _held(descriptor: int) -> int | None:
    """Lock an unfinished file as long as this process writes it; None if the system cannot."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):  # Windows does not rename open files
        os.close(descriptor)
        return None
    return descriptor


def _remove_abandoned(path: Path) -> None:
    """Remove the unfinished files of runs that were killed while they wrote this file."""
    with suppress(ImportError, OSError):
        import fcntl

        for name in os.listdir(path.parent):  # noqa: PTH208 - as text
            if not (name.startswith(f".{path.name}.") and name.endswith(".part")):
                continue
            with suppress(OSError):
                descriptor = os.open(path.parent / name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if time.time() - os.fstat(descriptor).st_mtime > _ABANDONED_S:
                        (path.parent / name).unlink()
                finally:
                    os.close(descriptor)


def check_free(path: Path, *, force: bool = False, inputs: Sequence[Path] = ()) -> None:
    """Raise for a name that `new_file` would refuse, before work is done for it.

    Raises
    ------
    FileExistsError
        As for `new_file`.
    """
    if not os.path.lexists(path):
        return
    check_no_input(path, inputs)
    if path.exists() and not path.is_file():
        message = f"{path} is not a regular file and is never replaced"
        raise FileExistsError(message)
    if not force:
        message = f"{path} exists; to replace it, use -f (force=True in Python)"
        raise FileExistsError(message)


def check_no_input(path: Path, inputs: Iterable[Path] = ()) -> None:
    """Raise if a file to write is an input, under any of its names.

    Parameters
    ----------
    path
        The file to write or append to.
    inputs
        Files and folders that are read, in addition to those of `inputs_protected`.

    Raises
    ------
    FileExistsError
        The file is one of the inputs, or lies in a folder that is one.
    """
    if not path.exists():
        return
    for each in (*inputs, *_protected.get()()):
        if not each.exists():
            continue
        if path.samefile(each):
            message = f"{path} is an input, which is never replaced"
            raise FileExistsError(message)
        if each.is_dir() and _lies_in(path, each):
            message = f"{path} is in an input folder, whose files are never replaced"
            raise FileExistsError(message)


@contextmanager
def inputs_protected(inputs: Callable[[], Iterable[Path]]) -> Iterator[None]:
    """Protect more inputs from being overwritten within the context.

    Parameters
    ----------
    inputs
        Returns the files and folders that are read. It is called when an existing file is about to
        be replaced or appended to.
    """
    outer = _protected.get()
    token = _protected.set(lambda: [*outer(), *inputs()])
    try:
        yield
    finally:
        _protected.reset(token)


def _lies_in(path: Path, folder: Path) -> bool:
    """Whether a file is in a folder or below it, or a link in the folder points to the file."""
    real, file = path.resolve(), path.stat()
    waiting, seen = [folder.resolve()], set[Path]()
    while waiting:
        place = waiting.pop()
        if real.is_relative_to(place):
            return True
        if place in seen:
            continue
        seen.add(place)
        with suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir():
                        waiting.append(Path(entry.path).resolve())
                    elif os.path.samestat(entry.stat(), file):
                        return True
    return False


def _see_to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
