"""The output of a job: counted, searched for results while it arrives, only its end kept."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from longpole.bench.extraction import Extractor, without_point
from longpole.bench.records.record import Measurement, Omitted, is_duration_ns

if TYPE_CHECKING:
    from longpole.bench.extraction import Extraction, MeasuredRow, OmittedRows
    from longpole.bench.run.guard import Stream

__all__ = ["NO_RESULTS", "Found", "Output", "Tail", "check_format"]

NO_RESULTS: Final = "none"
TAIL_BYTES: Final = 64 << 10

KEPT_RESULTS: Final = 10_000
"""Maximum number of results kept per job; further ones are summarised by name."""

SPEAKS_OF_ERROR: Final = re.compile(r"error|fail|fatal|exception|what\(\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Found:
    """The results in an output, in printed order, and the number of rows that are not results.

    `omitted` summarises the rows that were not kept, and `fastest_omitted` has the fastest of each
    name among them.
    """

    results: tuple[Measurement, ...] = ()
    unparsed: int = 0
    omitted: tuple[Omitted, ...] = ()
    fastest_omitted: tuple[Measurement, ...] = ()


class Tail:
    """The length of a stream of bytes, and its last 64 KiB."""

    def __init__(self) -> None:
        self.n_bytes = 0
        self._kept = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Process the next chunk."""
        self.n_bytes += len(chunk)
        self._kept += chunk[-TAIL_BYTES:]
        if len(self._kept) > 2 * TAIL_BYTES:
            del self._kept[:-TAIL_BYTES]

    def text(self, n_bytes: int = TAIL_BYTES) -> str:
        """Return the end as text; invalid UTF-8 is replaced."""
        return bytes(self._kept[-n_bytes:]).decode("utf-8", "replace")

    def telling_line(self) -> str:
        """Return the last line that mentions an error, else the last non-blank line."""
        lines = [line.strip() for line in reversed(self.text().splitlines())]
        return next(filter(SPEAKS_OF_ERROR.search, lines), next(filter(None, lines), ""))


class Output:
    """Both output streams of a job. Results are extracted from standard output.

    Parameters
    ----------
    format_name
        As `Job.format`.
    """

    def __init__(self, format_name: str) -> None:
        self.stdout = Tail()
        self.stderr = Tail()
        self._extractor = None if format_name == NO_RESULTS else _extractor(format_name)

    def take(self, stream: Stream, chunk: bytes) -> None:
        """Process output of the job."""
        if stream == "stderr":
            self.stderr.feed(chunk)
            return
        self.stdout.feed(chunk)
        if self._extractor is not None:
            self._extractor.feed(chunk)

    def finish(self, *, died: bool) -> Found:
        """Return the results. If the job died, an incomplete last line is not a result."""
        if self._extractor is None:
            return Found()
        return _found(self._extractor.finish(died=died))


@cache
def check_format(name: str) -> None:
    """Raise for an invalid format.

    Raises
    ------
    ValueError
        The name is unknown, or the pattern is invalid.
    """
    if name != NO_RESULTS:
        _extractor(name)


def _extractor(format_name: str) -> Extractor:
    return Extractor(format_name, max_rows=KEPT_RESULTS)


def _found(extraction: Extraction) -> Found:
    rows = extraction.measurements
    results = tuple(_measurement(row) for row in rows if _is_result(row))
    n_rejected = sum(extraction.rejected_counts.values())
    n_unusable = sum(each.n_rows - each.n_selectable for each in extraction.omitted)
    fastest = (each.fastest for each in extraction.omitted)
    return Found(
        results=results,
        unparsed=len(rows) - len(results) + n_rejected + n_unusable,
        omitted=tuple(map(_summed_up, extraction.omitted)),
        fastest_omitted=tuple(_measurement(row) for row in fastest if row and _is_result(row)),
    )


def _is_result(row: MeasuredRow) -> bool:
    return row.is_selectable and is_duration_ns(row.time_ns)


def _measurement(row: MeasuredRow) -> Measurement:
    original = {"time": row.printed_time, "unit": row.printed_unit, "format": row.format}
    time_ns = without_point(row.time_ns) or 0
    return Measurement(row.operation or "", time_ns, row.workspace_bytes, original)


def _summed_up(rows: OmittedRows) -> Omitted:
    fastest_ns = rows.fastest.time_ns if rows.fastest else None
    ends_ns = map(without_point, (fastest_ns, rows.last_ns))
    return Omitted(rows.operation or "", rows.n_rows, *ends_ns)
