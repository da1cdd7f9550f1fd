"""Results on disk: append-only JSON Lines, one row an attempt, whole or not there.

A row is one write and one fsync, done before the next job begins, so that a
runner killed at any time loses the job in hand and no other. Half a last row,
left by such an end, is cut off when the file is next opened for writing.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, Self

from longpole.bench.records.record import Record
from longpole.errors import ResultsError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Store", "StoredResults", "read_results"]

CHUNK_BYTES: Final = 1 << 16
_ROW_BEGINS: Final = b'{"'


@dataclass(frozen=True, slots=True)
class StoredResults:
    """The records of a file in the order of writing, and how many of its rows are none."""

    records: tuple[Record, ...]
    skipped: int


class Store:
    """A results file, open for one runner to append to.

    Parameters
    ----------
    path
        The file. It is made if it is not there.
    resume
        Go on with a file that holds rows. Without it such a file is refused:
        results are never overwritten, nor mixed by accident.

    Raises
    ------
    ResultsError
        The file holds rows already, or another runner writes to it.
    """

    def __init__(self, path: str | os.PathLike[str], *, resume: bool = False) -> None:
        self.path = Path(path)
        self._mutex = Lock()
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise ResultsError(_sentence(self.path, error)) from error
        try:
            self._claim()
            self._cut_half_row()
            if not resume:
                self._check_empty()
            _sync_folder(self.path.parent)
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, record: Record) -> None:
        """Write one row and wait until it is on disk.

        Raises
        ------
        ResultsError
            It could not be written, for want of space or otherwise. The file
            ends with the row before.
        """
        row = json.dumps(record.to_dict()).encode() + b"\n"
        with self._mutex:
            end = os.lseek(self._descriptor, 0, os.SEEK_END)
            try:
                if os.write(self._descriptor, row) < len(row):
                    message = f"{self.path}: no space for the next row of results"
                    raise ResultsError(message)  # noqa: TRY301
                os.fsync(self._descriptor)
            except (OSError, ResultsError) as error:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._descriptor, end)
                if isinstance(error, ResultsError):
                    raise
                raise ResultsError(_sentence(self.path, error)) from error

    def close(self) -> None:
        """Let another runner write to the file."""
        with self._mutex:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _claim(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = f"another runner writes to {self.path}"
            raise ResultsError(message) from error

    def _check_empty(self) -> None:
        if os.fstat(self._descriptor).st_size:
            message = f"{self.path} holds results already\nhint: resume it, or name another file"
            raise ResultsError(message)

    def _cut_half_row(self) -> None:
        """Cut a row that was not written to its end; other text is nobody's to cut."""
        end = os.fstat(self._descriptor).st_size
        while end > 0:
            start = max(0, end - CHUNK_BYTES)
            last = os.pread(self._descriptor, end - start, start).rfind(b"\n")
            end = start + last + 1 if last >= 0 else start
            if last >= 0:
                break
        begun = os.pread(self._descriptor, len(_ROW_BEGINS), end)
        if not _ROW_BEGINS.startswith(begun):
            message = f"{self.path} holds text that is no row of results, at byte {end}"
            raise ResultsError(message)
        os.ftruncate(self._descriptor, end)


def read_results(path: str | os.PathLike[str]) -> StoredResults:
    """Read a results file, also while it is being written.

    Rows that are no records, half a last one among them, are left out and counted.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    """
    records = []
    skipped = 0
    for line in _lines(Path(path)):
        try:
            records.append(Record.from_dict(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError):
            skipped += 1
    return StoredResults(tuple(records), skipped)


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from (line for line in file if line.strip())


def _sync_folder(folder: Path) -> None:
    """Make sure that the file itself is found again after a power cut."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _sentence(path: Path, error: OSError) -> str:
    return f"the results could not be written to {path}: {error.strerror or error}"
