"""Progress on stderr: lines that are redrawn in place, and a bar while a trace is read."""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.files.opening import open_file
from longpole.words.wording import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_LEAST_INTERVAL_S: Final = 0.1
_WIDTH: Final = 80
_BAR_CHARACTERS: Final = 30
# A bar is shown only if reading takes longer than this.
_PATIENCE_SECONDS: Final = 0.5


def is_watched() -> bool:
    """Whether stderr is a terminal, so that a user sees redrawn lines."""
    return sys.stderr.isatty() and not os.environ.get("CI")


def bar(share: float) -> str:
    """Return a progress bar.

    Examples
    --------
    >>> bar(0.5)
    '[===============               ]'
    """
    done = "=" * round(min(share, 1) * _BAR_CHARACTERS)
    return f"[{done:<{_BAR_CHARACTERS}}]"


class Live:
    """Shows lines on stderr until the next ones are shown."""

    def __init__(self) -> None:
        self._n_lines = 0
        self._drawn_s = float("-inf")

    def show(self, lines: Sequence[str]) -> None:
        """Replace the previous lines by these; does nothing if called again too soon."""
        now_s = time.monotonic()
        if now_s - self._drawn_s < _LEAST_INTERVAL_S:
            return
        self._drawn_s = now_s
        width = shutil.get_terminal_size((_WIDTH, 24)).columns
        drawn = "".join(f"{line[: width - 1]}\n" for line in lines)
        sys.stderr.write(self._erased() + drawn)
        sys.stderr.flush()
        self._n_lines = len(lines)

    def write_above(self, text: str) -> None:
        """Write permanent text above the lines."""
        sys.stderr.write(self._erased() + text)
        self._n_lines = 0
        self._drawn_s = float("-inf")

    def clear(self) -> None:
        """Remove the lines."""
        sys.stderr.write(self._erased())
        sys.stderr.flush()
        self._n_lines = 0

    def _erased(self) -> str:
        return f"\x1b[{self._n_lines}A\x1b[J" if self._n_lines else ""


@contextmanager
def reading(path: str) -> Iterator[Callable[[int], None] | None]:
    """Yield a callback for `read_trace`, or None without a terminal."""
    if not is_watched():
        yield None
        return
    begun = time.monotonic()
    name = escape(Path(path).name) if path != "-" else "stdin"
    size, live = _size(path), Live()

    def show(n_bytes: int) -> None:
        if time.monotonic() - begun >= _PATIENCE_SECONDS:
            live.show([_line(name, n_bytes, size)])

    try:
        yield show
    finally:
        live.clear()


def _line(name: str, n_bytes: int, size: int | None) -> str:
    """Return the progress: a bar for a plain file, else the bytes read (uncompressed).

    Examples
    --------
    >>> _line("a.json", 30_000_000, 60_000_000)
    'reading a.json [===============               ] 30 of 60 MB'
    >>> _line("a.json.gz", 30_000_000, None)
    'reading a.json.gz: 30 MB'
    """
    if not size:
        return f"reading {name}: {n_bytes / 1e6:.0f} MB"
    amount = f"{n_bytes / 1e6:.0f} of {size / 1e6:.0f} MB"
    return f"reading {name} {bar(n_bytes / size)} {amount}"


_PACKED: Final = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zX")
"""Magic bytes of gzip, zstd and xz files."""


def _size(path: str) -> int | None:
    """Return the number of bytes to read; None for compressed or piped input."""
    try:
        with open_file(path, is_named=False) as file:
            is_packed = file.read(4).startswith(_PACKED)
            return None if is_packed or path == "-" else os.fstat(file.fileno()).st_size
    except OSError:
        return None
