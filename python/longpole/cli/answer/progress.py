"""A bar on stderr while a large trace is read."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.cli.answer.live import Live, bar, is_watched
from longpole.opening import open_file
from longpole.wording import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["reading"]

# Faster reading needs no bar.
_PATIENCE_SECONDS: Final = 0.5


@contextmanager
def reading(path: str, *, enabled: bool) -> Iterator[Callable[[int], None] | None]:
    """Yield a callback for `read_trace`, or None without a terminal."""
    if not (enabled and is_watched()):
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
