"""A bar on stderr while a large trace is read."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["reading"]

# What is read faster needs no bar, and rich need not be imported for it.
_PATIENCE_SECONDS: Final = 0.5


@contextmanager
def reading(path: str, *, enabled: bool) -> Iterator[Callable[[int], None] | None]:
    """Give a callback for `read_trace`, or None where nobody watches."""
    if not (enabled and sys.stderr.isatty() and not os.environ.get("CI")):
        yield None
        return
    bar = _Bar(path)
    try:
        yield bar.show
    finally:
        bar.close()


class _Bar:
    """A bar that appears when reading takes its time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._begun = time.monotonic()
        self._progress: Any = None
        self._task: Any = None

    def show(self, n_bytes: int) -> None:
        """Move the bar to the number of bytes that are read (of the uncompressed file)."""
        if self._progress is None:
            if time.monotonic() - self._begun < _PATIENCE_SECONDS:
                return
            self._open()
        self._progress.update(self._task, completed=n_bytes)

    def close(self) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        from longpole.wording import escape

        name = escape(Path(self._path).name) if self._path != "-" else "stdin"
        self._progress = Progress(
            TextColumn("reading {task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task(name, total=_size(self._path))
        self._progress.start()


def _size(path: str) -> int | None:
    """How many bytes there are to read; unknown for what is compressed or piped."""
    try:
        with Path(path).open("rb") as file:
            is_gzip = file.read(2) == b"\x1f\x8b"
            return None if is_gzip or path == "-" else Path(path).stat().st_size
    except OSError:
        return None
