"""A file for rows that the results file can no longer store."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

__all__ = ["SideFile"]

CHUNK_BYTES: Final = 1 << 20
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class SideFile:
    """A new file for rows, created with the first one.

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
        while chunk := os.pread(descriptor, CHUNK_BYTES, at):
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
                raise OSError  # noqa: TRY301 - as if the system had said so
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
