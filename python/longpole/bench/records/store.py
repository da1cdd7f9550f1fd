"""Results on disk: append-only JSON Lines, one row per attempt, complete or absent.

A row is one write and one fsync before the next job begins, so that a runner killed at any time
loses only the current job.

Files of other programs are never touched. A file counts as results by its contents, never by its
name: it consists of records, or is empty. Before each row, the file is compared with what this
store wrote. If another program deleted, renamed, replaced, truncated or wrote to it, the run ends
with an error that names the change, and rows that cannot be stored go to another file in the same
folder. The last row is compared before each new one, all others when the file is closed. Rows that
another program truncated or overwrote are lost.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import stat
import tempfile
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from longpole.bench.records.reading import MAX_ROW_BYTES, RowKind, row_kind, rows_of
from longpole.errors import ResultsError
from longpole.files.writing import check_no_input

if TYPE_CHECKING:
    from collections.abc import Mapping

    class _Row(Protocol):
        """An object that can be written as a row."""

        def to_dict(self) -> Mapping[str, Any]: ...


PRIVATE: Final = 0o600
CHUNK_BYTES: Final = 1 << 16
_ROW_BEGINS: Final = b'{"'
_FIRST_ROW_BEGINS: Final = b'{"schema": "longpole.bench.'
_NO_SPACE: Final = errno.ENOSPC
_OVERWRITTEN: Final = (
    "was overwritten by another program during the run, and rows in it may be lost"
)


class Store:
    """A results file, open for appending by one writer.

    Parameters
    ----------
    path
        The file. If it does not exist, it is created readable only by its owner.
    resume
        Continue a file with records. Without this such a file is refused, so that results are never
        overwritten or mixed by accident.

    Raises
    ------
    ResultsError
        The file contains something else, contains records without `resume`, cannot be written, or
        is in use by another runner.
    FileExistsError
        The file is an input of the command.
    """

    def __init__(self, path: str | os.PathLike[str], *, resume: bool = False) -> None:
        self.path = Path(path)
        check_no_input(self.path)
        if self.path.is_symlink() and not self.path.exists():
            message = f"{self.path} is a link to a file that does not exist, which is not made"
            raise ResultsError(message)
        self._is_new = not self.path.exists()
        self._mutex = Lock()
        self._fault = ""
        self._side: SideFile | None = None
        self._descriptor = _open_plain(self.path, os.O_RDWR | os.O_CREAT)
        try:
            self._real_path = Path(os.path.realpath(self.path))
            _claim(self._descriptor, self.path)
            if os.fstat(self._descriptor).st_size:
                _check_ours(self.path, resume=resume)
                _end_last_row(self._descriptor, self.path)
            self._known = os.fstat(self._descriptor)
            self._digest = _digest(self._descriptor, self._known.st_size)
            self._last_row = b""
            _sync_folder(self.path.parent)
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, record: _Row) -> None:
        """Write one row and sync it to disk.

        Raises
        ------
        ResultsError
            The row could not be written, or the file was changed by another program. The message
            says where the row is stored instead.
        """
        row = json.dumps(record.to_dict()).encode() + b"\n"
        with self._mutex:
            if fault := self._fault or self._change():
                self._fail(fault, row)
            try:
                _write_whole(self._descriptor, row, self._known.st_size)
            except OSError as error:
                self._fail(f"cannot be written: {error.strerror or error}", row)
            self._known = os.fstat(self._descriptor)
            self._digest.update(row)
            self._last_row = row

    def close(self) -> None:
        """Release the file for other runners.

        Raises
        ------
        ResultsError
            The file was changed after the last row.
        """
        with self._mutex:
            if self._descriptor < 0:
                return
            try:
                if not self._fault and (change := self._change() or self._overwriting()):
                    self._fail(change)
                self._remove_if_empty()
            finally:
                os.close(self._descriptor)
                self._descriptor = -1
                if self._side is not None:
                    self._side.close()

    def _remove_if_empty(self) -> None:
        """Remove a file that this store created and wrote no row to."""
        if self._is_new and not os.fstat(self._descriptor).st_size:
            with contextlib.suppress(OSError):
                self.path.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _change(self) -> str:
        """Describe how the file changed since the last row; empty if it did not."""
        now = os.fstat(self._descriptor)
        try:
            there = os.lstat(self._real_path)
        except OSError:
            there = None
        if there is None or (there.st_dev, there.st_ino) != (now.st_dev, now.st_ino):
            return _absence(now, there)
        if now.st_nlink != self._known.st_nlink:
            return "was given another name (a hard link) during the run"
        if now.st_size < self._known.st_size:
            return "was truncated by another program during the run, and the rows cut off are lost"
        if now.st_size > self._known.st_size:
            return "was written to by another program during the run"
        begin = now.st_size - len(self._last_row)
        is_kept = os.pread(self._descriptor, len(self._last_row), begin) == self._last_row
        return "" if is_kept else _OVERWRITTEN

    def _overwriting(self) -> str:
        """Describe how the file differs from what was written; empty if it does not."""
        found = _digest(self._descriptor, self._known.st_size)
        return "" if found.digest() == self._digest.digest() else _OVERWRITTEN

    def _fail(self, fault: str, row: bytes = b"") -> None:
        """Store what the file cannot hold in another file, and raise."""
        is_new = not self._fault
        self._fault = fault
        self._side = self._side or SideFile(self.path)
        if is_new and os.fstat(self._descriptor).st_nlink == 0:
            self._side.copy_from(self._descriptor)  # the file has no name any more
        self._side.append(row)
        message = f"{self.path} {fault}{self._side.whereabouts()}"
        raise ResultsError(message)


def _digest(descriptor: int, size: int) -> hashlib.blake2b:
    """Compute the digest of the first bytes of a file."""
    digest = hashlib.blake2b()
    for begin in range(0, size, CHUNK_BYTES):
        digest.update(os.pread(descriptor, min(CHUNK_BYTES, size - begin), begin))
    return digest


def make_room(path: str | os.PathLike[str], *, force: bool) -> None:
    """Check that results can be started; with `force` remove those of an earlier run.

    Raises
    ------
    ResultsError
        The path must not be replaced: results without `force`, results in use by another runner, or
        anything but a results file.
    FileExistsError
        The file is an input of the command.
    """
    path = Path(path)
    check_no_input(path)
    if not path.exists():
        return
    descriptor = _open_plain(path, os.O_RDWR)
    try:
        _claim(descriptor, path)
        if not os.fstat(descriptor).st_size:
            return
        if not force:
            _check_ours(path, resume=False)
        _check_all_ours(path)
        path.unlink()
    finally:
        os.close(descriptor)


def _open_plain(path: Path, flags: int) -> int:
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, PRIVATE)
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror or error}"
        raise ResultsError(message) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        message = f"{path} is not a regular file, so it cannot hold results"
        raise ResultsError(message)
    return descriptor


def _claim(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        message = f"another runner writes to {path}"
        raise ResultsError(message) from error


def _check_ours(path: Path, *, resume: bool) -> None:
    """Raise for a file without records, and for one with records that is not to be resumed."""
    if not any(row_kind(line) is RowKind.RECORD for line in rows_of(path)):
        raise ResultsError(_no_record(path))
    if not resume:
        message = (
            f"{path} already holds results\n"
            f"hint: `longpole bench run --resume -o {path}` (a search: `longpole tune --resume`), "
            "or another name with -o, or -f"
        )
        raise ResultsError(message)


def _no_record(path: Path) -> str:
    """Describe a file without records, perhaps one whose first row was truncated."""
    with path.open("rb") as file:
        begins_as_ours = file.read(len(_FIRST_ROW_BEGINS)) == _FIRST_ROW_BEGINS
        is_one_line = b"\n" not in file.read(MAX_ROW_BYTES)
    if begins_as_ours and is_one_line:
        return (
            f"{path} contains no record of a run, only the beginning of a first one: "
            "the runner was ended while it wrote it\n"
            "hint: no result is lost; delete the file and run again"
        )
    return (
        f"{path} contains no record of a run and is not changed\n"
        "hint: give another name for the results"
    )


def _check_all_ours(path: Path) -> None:
    """Raise before removing a file with any line that is not ours, except a truncated last one."""
    _check_ours(path, resume=True)
    for line in rows_of(path):
        if row_kind(line) is RowKind.FOREIGN and line.endswith(b"\n"):
            message = (
                f"{path} has lines that are not records of a run, so it is not replaced\n"
                "hint: give another name for the results"
            )
            raise ResultsError(message)


def _end_last_row(descriptor: int, path: Path) -> None:
    """Terminate the last row with a line end, or remove it if incomplete."""
    size = os.fstat(descriptor).st_size
    start = _start_of_last_row(descriptor, size)
    if start == size:
        return
    last = os.pread(descriptor, size - start, start)
    if row_kind(last) is not RowKind.FOREIGN:
        _write_whole(descriptor, b"\n", size)
    elif last.startswith(_ROW_BEGINS) or _ROW_BEGINS.startswith(last):
        os.ftruncate(descriptor, start)
    else:
        message = f"{path} ends with text that is not a row of results, at byte {start}"
        raise ResultsError(message)


def _start_of_last_row(descriptor: int, end: int) -> int:
    while end > 0:
        start = max(0, end - CHUNK_BYTES)
        last = os.pread(descriptor, end - start, start).rfind(b"\n")
        if last >= 0:
            return start + last + 1
        end = start
    return 0


def _write_whole(descriptor: int, row: bytes, at: int) -> None:
    """Append a complete row, or leave the file unchanged."""
    try:
        n_written = os.pwrite(descriptor, row, at)
        if n_written < len(row):
            raise OSError(_NO_SPACE, os.strerror(_NO_SPACE))  # noqa: TRY301 - handled like a full disk
        os.fsync(descriptor)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, at)
        raise


def _absence(now: os.stat_result, there: os.stat_result | None) -> str:
    if now.st_nlink == 0:
        return "was deleted during the run"
    if there is not None and stat.S_ISLNK(there.st_mode):
        return "was replaced by a symbolic link during the run"
    return "was renamed or replaced during the run"


def _sync_folder(folder: Path) -> None:
    """Sync the folder, so that the file itself survives a power failure."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_COPIED_BYTES: Final = 1 << 20
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class SideFile:
    """A new file for rows, created when the first row is added.

    It is in the folder of the results, or in the folder for temporary files if that is not
    possible. Existing files are not touched.
    """

    def __init__(self, results: Path) -> None:
        self._results = results
        self._descriptor = -1
        self._path: Path | None = None
        self._n_lost = 0

    def append(self, row: bytes) -> None:
        """Store a row, or count it as lost if no file can be written."""
        if row and not self._write(row):
            self._n_lost += 1

    def copy_from(self, descriptor: int) -> None:
        """Copy the contents of an open file."""
        at = 0
        while chunk := os.pread(descriptor, _COPIED_BYTES, at):
            if not self._write(chunk):
                self._n_lost += chunk.count(b"\n")
            at += len(chunk)

    def whereabouts(self) -> str:
        """Return where the rows are, as the end of a sentence."""
        kept = f"; rows that it cannot keep are in {self._path}" if self._path else ""
        lost = f"; rows that could be kept nowhere: {self._n_lost}" if self._n_lost else ""
        return kept + lost

    def close(self) -> None:
        """Close the file if there is one."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self, line: bytes) -> bool:
        for folder in (self._results.parent, Path(tempfile.gettempdir())):
            if self._path is not None and self._path.parent != folder:
                continue
            if self._write_in(folder, line):
                return True
        return False

    def _write_in(self, folder: Path, line: bytes) -> bool:
        is_new = self._path is None
        try:
            if is_new:
                self._make(folder)
            end = os.fstat(self._descriptor).st_size
            if os.pwrite(self._descriptor, line, end) < len(line):
                os.ftruncate(self._descriptor, end)
                raise OSError  # noqa: TRY301 - handled like an error of the system
            os.fsync(self._descriptor)
        except OSError:
            if is_new and self._path is not None:
                self._path.unlink(missing_ok=True)
                self.close()
                self._path = None
            return False
        return True

    def _make(self, folder: Path) -> None:
        for number in range(1, 1000):
            path = folder / f"{self._results.name}.rescued-{number}.jsonl"
            try:
                self._descriptor = os.open(path, _FLAGS, 0o600)
            except FileExistsError:
                continue
            self._path = path
            return
        raise FileExistsError(folder)
