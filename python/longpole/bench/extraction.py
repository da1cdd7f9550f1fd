"""Extracts records from the output of profilers.

All formats are searched at once, in one pass over the bytes, and unreadable rows are counted with
their position and the reason.
"""

from __future__ import annotations

import os
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from longpole._core import Extractor as CoreExtractor
from longpole._core import extract_formats
from longpole.bench.documents import DOCUMENTS, documents_in
from longpole.files.opening import open_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

    from longpole._core import Extraction as CoreExtraction
    from longpole._core import Table
    from longpole.bench.documents import Document

CHUNK_BYTES: Final = 1 << 18
MAX_ROWS: Final = 1_000_000
MAX_DOCUMENT_BYTES: Final = 32 << 20
"""A longer output is read line by line, even if it begins like JSON."""
ROWS_AT_ONCE: Final = 10_000
PATTERN_PREFIX: Final = "regex="
PATTERN_FORMAT: Final = "regex"
"""The format of rows that a pattern matched."""
BLANKS: Final = b" \t\r\n\xef\xbb\xbf"


class BinaryFile(Protocol):
    """An object with `read` that returns bytes; None or empty at the end."""

    def read(self, size: int, /) -> bytes | None:
        """Return at most `size` bytes."""
        ...


def extract(
    source: str | os.PathLike[str] | bytes | BinaryFile,
    *,
    format: str | Sequence[str] = "auto",  # noqa: A002 - the option of the command has this name
    died: bool = False,
    max_rows: int = MAX_ROWS,
) -> Extraction:
    r"""Extract measurements from the output of profilers.

    One stream may contain several formats, with other lines between the rows. It is read once, in
    chunks: memory is bounded by what is kept.

    Parameters
    ----------
    source
        A path, the bytes themselves, or a binary file object.
    format
        `"auto"` for every format of `formats()`, the name of one, `"regex=..."` for a custom
        pattern, or a list of these. A pattern is matched within lines, in time linear in the text.
        Its groups `time_ns`, `time_us`, `time_ms` or `time_s` (or `time` and `unit`) contain the
        time, `operation` or `op`, `workspace` or `ws` and `bytes` the values of these names, and
        all others become `Extraction.fields`.
    died
        Whether the process that printed this was killed or crashed. A last line without line end
        may then lack digits: its record gets the status `cut`.
    max_rows
        Maximum number of rows to keep; further ones are summarised in `Extraction.omitted`.

    Raises
    ------
    ValueError
        The format does not exist, or the pattern is invalid.
    OSError
        The file cannot be opened or read.

    Examples
    --------
    >>> found = extract(b"OP:gemm_64,TIME:9.5e-05,WS:0\nOP:gemm_128,TIME:0,WS:0\n")
    >>> found.records.select("operation", "time_ns", "status").rows()
    [('gemm_64', 95.0, 'ok'), ('gemm_128', 0.0, 'zero')]
    >>> found.best().operation
    'gemm_64'
    """
    extractor = Extractor(format, max_rows=max_rows)
    if isinstance(source, bytes):
        extractor.feed(source)
    elif isinstance(source, (str, os.PathLike)):
        with open_file(source) as file:
            _feed_file(extractor, file)
    else:
        _feed_file(extractor, source)
    return extractor.finish(died=died)


def formats() -> dict[str, str]:
    """Return the name of every format, and the tool that prints it."""
    return dict(extract_formats()) | {name: it.summary for name, it in DOCUMENTS.items()}


def without_point(time_ns: float | None) -> float | None:
    """Return whole nanoseconds as an integer, and anything else unchanged."""
    return int(time_ns) if time_ns is not None and time_ns.is_integer() else time_ns


class Extractor:
    """Extracts records from one stream that arrives in arbitrary chunks.

    Parameters
    ----------
    format, max_rows
        As in `extract`.

    Examples
    --------
    >>> extractor = Extractor("aitemplate")
    >>> extractor.feed(b"OP:gemm,TIME:1.25,WS:10")
    >>> extractor.finish(died=True).measurements[0].status
    'cut'
    """

    def __init__(
        self,
        format: str | Sequence[str] = "auto",  # noqa: A002 - as in `extract`
        *,
        max_rows: int = MAX_ROWS,
    ) -> None:
        if max_rows < 1:
            message = f"max_rows must be at least 1, not {max_rows}"
            raise ValueError(message)
        wanted = [format] if isinstance(format, str) else list(format)
        patterns = [name for name in wanted if name.startswith(PATTERN_PREFIX)]
        named = (
            list(formats())
            if "auto" in wanted
            else [each for each in wanted if each not in patterns]
        )
        _check_names(named)
        self._core = CoreExtractor(
            [name for name in named if name not in DOCUMENTS],
            [pattern.removeprefix(PATTERN_PREFIX) for pattern in patterns],
            max_rows,
        )
        self._max_rows = max_rows
        self._documents = [name for name in named if name in DOCUMENTS]
        self._head: bytearray | None = bytearray() if self._documents else None

    def feed(self, chunk: bytes) -> None:
        """Process the next chunk."""
        if self._head is not None and not self._may_be_document(self._head, chunk):
            self._read_by_lines()
        if self._head is None:
            self._core.feed(chunk)
        else:
            self._head += chunk

    def _may_be_document(self, head: bytearray, chunk: bytes) -> bool:
        begin = bytes(head[:64] + chunk[:64]).lstrip(BLANKS)[:1]
        return begin in {b"", b"{"} and len(head) + len(chunk) <= MAX_DOCUMENT_BYTES

    def finish(self, *, died: bool = False) -> Extraction:
        """End the stream and return the records; `died` is as in `extract`."""
        if self._head is not None and not self._read_documents(bytes(self._head), died=died):
            self._read_by_lines()
        self._head = None
        return Extraction(self._core.finish(died))

    def _read_by_lines(self) -> None:
        text, self._head = bytes(self._head or b""), None
        self._core.feed(text)

    def _read_documents(self, text: bytes, *, died: bool) -> bool:
        """Read the whole output as JSON; return whether it begins with a known document."""
        last: Document | None = None
        for document in documents_in(text, self._documents):
            if last is None:
                self._core = CoreExtractor([], [], self._max_rows)
                self._core.feed(text)
            last = document
            while rows := list(islice(document.rows, ROWS_AT_ONCE)):
                self._core.record(document.format, document.offset, rows)
        if last is None:
            return False
        if rest := text[last.end :].lstrip(BLANKS):
            reason = "truncated" if died or rest.startswith(b"{") else "extra_text"
            self._core.reject(last.format, len(text) - len(rest), rest[:200], reason)
        return True


def _check_names(names: Iterable[str]) -> None:
    known = formats()
    for name in names:
        if name not in known:
            message = f"no format {name!r}; there are {', '.join(known)}"
            raise ValueError(message)


class MeasuredRow(NamedTuple):
    """One measured row."""

    format: str
    operation: str | None
    time_ns: float | None
    printed_time: str
    printed_unit: str
    workspace_bytes: int | None
    data_bytes: int | None
    status: str

    @property
    def is_selectable(self) -> bool:
        """Whether the time may be compared with others."""
        return self.status == "ok"


class OmittedRows(NamedTuple):
    """Summary of the rows of one operation that were not kept.

    Parameters
    ----------
    format, operation
        As in `MeasuredRow`; `is_rest` marks the rows of several operations.
    n_rows, n_selectable
        Number of all rows, and number of comparable rows.
    fastest
        The fastest comparable row.
    last_ns
        Time of the last row; None if it is not finite.
    """

    format: str
    operation: str | None
    is_rest: bool
    n_rows: int
    n_selectable: int
    fastest: MeasuredRow | None
    last_ns: float | None


class Extraction:
    """The records extracted from one stream.

    Frames are computed on first use and cached.
    """

    def __init__(self, core: CoreExtraction) -> None:
        self._core = core

    @cached_property
    def records(self) -> pl.DataFrame:
        """One row for each measured row, in the order of completion.

        Columns: `offset` (of its line, in bytes), `format`, `operation` (null if the tool does not
        name it), `time_ns` (null if not finite), `printed_time`, `printed_unit`, `workspace_bytes`,
        `data_bytes` (null if unknown), `status`. Only rows of status `ok` may be compared; the
        others are `zero`, `negative`, `inf`, `nan`, `missing` (no time was printed), `failed`
        (according to the tool), `cut` (the process died on this line).

        Times are as printed: those of AITemplate are the sum of all timed iterations.
        """
        return _frame(self._core.records())

    @cached_property
    def fields(self) -> pl.DataFrame:
        """Further values of the rows, under the tool's names: `record`, `name`, `value`.

        `record` is the row in `records`.
        """
        return _frame(self._core.fields())

    @cached_property
    def rejected(self) -> pl.DataFrame:
        """Rows that could not be read, the first ten thousand of them.

        Columns: `offset`, `format`, `reason`, `excerpt`.
        """
        return _frame(self._core.rejections())

    @cached_property
    def rejected_counts(self) -> dict[str, int]:
        """Number of unreadable rows by reason."""
        return dict(self._core.rejection_counts())

    @cached_property
    def measurements(self) -> list[MeasuredRow]:
        """Return the rows of `records` as tuples, without a frame."""
        return [MeasuredRow(*row) for row in self._core.rows()]

    @cached_property
    def omitted(self) -> list[OmittedRows]:
        """Rows that were not kept, summarised by operation."""
        return [
            OmittedRows(
                *(form, operation, is_rest, n_rows, n_selectable),
                fastest=fastest and MeasuredRow(form, operation, *fastest, status="ok"),
                last_ns=last_ns,
            )
            for form, operation, is_rest, n_rows, n_selectable, fastest, last_ns in (
                self._core.omitted()
            )
        ]

    @property
    def n_bytes(self) -> int:
        """Length of the stream in bytes."""
        return self._core.n_bytes

    @property
    def is_unterminated(self) -> bool:
        """Whether the last line lacks its line end, as after the death of a process."""
        return self._core.is_unterminated

    def best(self, operations: Iterable[str] | None = None) -> MeasuredRow | None:
        """Return the fastest comparable row, or None.

        Among equally fast rows, the operation that comes first in the alphabet wins, and of its
        rows the first: the printed order matters only there.

        Parameters
        ----------
        operations
            Consider only these operations.
        """
        if isinstance(operations, str):
            message = "operations is a list of names, not one name"
            raise TypeError(message)
        wanted = None if operations is None else set(operations)
        fastest_omitted = (each.fastest for each in self.omitted if each.fastest)
        rows = [
            row
            for row in (*self.measurements, *fastest_omitted)
            if row.is_selectable and (wanted is None or row.operation in wanted)
        ]
        return min(rows, key=lambda row: (row.time_ns, row.operation or ""), default=None)

    def table(self, format: str) -> pl.DataFrame:  # noqa: A002 - as in `extract`
        """Return the records of one format with a column for each of its fields.

        The columns of `records` come first; fields are strings, as printed, and null if a row lacks
        the name.
        """
        import polars as pl

        records = self.records.with_row_index("record").filter(pl.col("format") == format)
        fields = self.fields.join(records.select("record"), on="record", how="semi")
        if fields.is_empty():
            return records.drop("record")
        texts = fields.with_columns(pl.col("name", "value").cast(pl.String))
        wide = texts.pivot("name", index="record", values="value", aggregate_function="first")
        return records.join(wide, on="record", how="left", maintain_order="left").drop("record")


def _feed_file(extractor: Extractor, file: BinaryFile) -> None:
    while chunk := file.read(CHUNK_BYTES):
        extractor.feed(chunk)


def _frame(table: Table) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(table)
