"""The rows that profilers print: `OP:name,TIME:milliseconds,WS:bytes`.

Bytes in, chunk by chunk, results out. Memory is bounded: a line that does not
end is given up after a megabyte.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Protocol

from longpole.bench.record import Measurement

__all__ = ["Extraction", "Extractor", "open_extractor"]

LINE_BYTES: Final = 1 << 20
NS_PER_MS: Final = 1_000_000
# Figures as `printf` and `std::cout` write them, in ASCII digits.
NUMBER: Final = rb"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
ROW: Final = re.compile(rb"OP:(?P<op>.+?),[ ]*TIME:(?P<time>" + NUMBER + rb"),[ ]*WS:(?P<ws>\d+)")
LINE_END: Final = re.compile(rb"[\r\n]+")


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was found in an output: results in the order of printing, and rows that are none."""

    results: tuple[Measurement, ...] = ()
    unparsed: int = 0


class Extractor(Protocol):
    """Finds results in an output that comes in pieces of any size."""

    def feed(self, chunk: bytes) -> None:
        """Take the next piece."""
        ...

    def finish(self, *, ended_well: bool) -> Extraction:
        """Say what was found. After a bad end a last line without its line end is no result."""
        ...


def open_extractor(format_name: str) -> Extractor:
    """Give an extractor for a format: `auto`, or `none` for output that holds no results.

    Raises
    ------
    ValueError
        There is no such format.
    """
    if format_name == "none":
        return _Nothing()
    if format_name in {"auto", "aitemplate"}:
        return _Rows()
    message = f"unknown format {format_name!r}; known: auto, aitemplate, none"
    raise ValueError(message)


class _Nothing:
    def feed(self, chunk: bytes) -> None:
        """Take no notice."""

    def finish(self, *, ended_well: bool) -> Extraction:  # noqa: ARG002
        """Say that nothing was looked for."""
        return Extraction()


class _Rows:
    def __init__(self) -> None:
        self._line = b""
        self._overlong = False
        self._results: list[Measurement] = []
        self._unparsed = 0

    def feed(self, chunk: bytes) -> None:
        """Take the lines that are complete, and keep the last one."""
        end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
        if not end:
            self._keep(self._line + chunk)
            return
        complete = chunk[:end] if self._overlong else self._line + chunk[:end]
        if self._overlong:
            complete = complete[_first_line_end(complete) :]
        self._overlong = False
        if b"TIME:" in complete:
            for line in LINE_END.split(complete):
                self._take(line)
        self._keep(chunk[end:])

    def finish(self, *, ended_well: bool) -> Extraction:
        """Take the last line too, if its end was meant."""
        if self._line and not self._overlong:
            if ended_well:
                self._take(self._line)
            else:
                self._unparsed += b"TIME:" in self._line
        return Extraction(tuple(self._results), self._unparsed)

    def _keep(self, line: bytes) -> None:
        self._overlong = self._overlong or len(line) > LINE_BYTES
        self._line = b"" if self._overlong else line

    def _take(self, line: bytes) -> None:
        if b"OP:" not in line or b"TIME:" not in line:
            return
        row = ROW.fullmatch(line.strip())
        time_ms = float(row["time"]) if row else math.nan
        if row is None or not 0 < time_ms < math.inf:
            self._unparsed += 1
            return
        original = {"time": row["time"].decode(), "workspace": row["ws"].decode(), "unit": "ms"}
        name = row["op"].decode("utf-8", "replace")
        time_ns = float(Decimal(original["time"]) * NS_PER_MS)  # exact until here
        self._results.append(Measurement(name, time_ns, int(row["ws"]), original))


def _first_line_end(text: bytes) -> int:
    found = LINE_END.search(text)
    return found.end() if found else len(text)
