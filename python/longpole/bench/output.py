"""What a job prints: counted, searched for results as it comes, and only its end kept."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from longpole.bench.guard import Stream
    from longpole.bench.rows import Extractor

__all__ = ["Output", "Tail"]

TAIL_BYTES: Final = 64 << 10
SPEAKS_OF_ERROR: Final = re.compile(r"error|fail|fatal|exception|what\(\)", re.IGNORECASE)


class Tail:
    """The length of a stream of bytes, and its last 64 KiB."""

    def __init__(self) -> None:
        self.n_bytes = 0
        self._kept = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Take the next piece."""
        self.n_bytes += len(chunk)
        self._kept += chunk[-TAIL_BYTES:]
        if len(self._kept) > 2 * TAIL_BYTES:
            del self._kept[:-TAIL_BYTES]

    def text(self, n_bytes: int = TAIL_BYTES) -> str:
        """Give the end as text; bytes that are no UTF-8 are replaced."""
        return bytes(self._kept[-n_bytes:]).decode("utf-8", "replace")

    def telling_line(self) -> str:
        """Give the last line that speaks of an error, or else the last that is not blank."""
        lines = [line.strip() for line in reversed(self.text().splitlines())]
        return next(filter(SPEAKS_OF_ERROR.search, lines), next(filter(None, lines), ""))


class Output:
    """Both streams of a job. Results are looked for on standard output."""

    def __init__(self, extractor: Extractor) -> None:
        self.extractor = extractor
        self.stdout = Tail()
        self.stderr = Tail()

    def take(self, stream: Stream, chunk: bytes) -> None:
        """Take what the job printed."""
        if stream == "stderr":
            self.stderr.feed(chunk)
        else:
            self.stdout.feed(chunk)
            self.extractor.feed(chunk)
