"""Reads the CSV files of an Ascend profile into frames, tolerating edits by other programs.

Times become nanoseconds, exactly. Unreadable cells are null, and each kind of fault is reported
once, with its first line.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.files.opening import read_bytes
from longpole.formats.ascend.columns import Column, Layout, layout_of
from longpole.formats.ascend.problems import profile_error

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Sequence

    import polars as pl

_MISSING: Final = frozenset({"", "N/A", "NA", "nan", "None", "null", "-"})
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_ROUNDED_STAMP: Final = re.compile(r"\d(?:\.\d+)?[eE]\+?\d+")
_LARGEST_NS: Final = (1 << 62) - 1
_LARGEST_INTEGER: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class TableFinding:
    """One kind of problem in a file: its code, its meaning, the count, and the first line."""

    code: str
    message: str
    count: int
    line: int


@dataclass(frozen=True, slots=True)
class AscendTable:
    """A CSV file of a profile: its kind, its rows, and its problems."""

    name: str
    path: Path
    frame: pl.DataFrame
    findings: tuple[TableFinding, ...]


_MESSAGES: Final = {
    "missing_column": "a column that such files have is missing; it is null",
    "short_row": "a row has fewer cells than the header; the others are null",
    "long_row": "a row has more cells than the header; they are left out",
    "bad_number": "a cell is not a number; it is null",
    "rounded_stamp": (
        "a time in exponent notation, as spreadsheets write it, has lost its digits; it is "
        "null: export the profile again"
    ),
    "invalid_utf8": "bytes that are not UTF-8 were replaced by U+FFFD",
    "unclosed_quote": "the file ends inside quotes; the last row may be incomplete",
}


class _Findings:
    """Counts problems by kind."""

    def __init__(self) -> None:
        self._found: dict[str, TableFinding] = {}

    def note(self, code: str, line: int, detail: str = "") -> None:
        message = f"{detail}: {_MESSAGES[code]}" if detail else _MESSAGES[code]
        known = self._found.get(message) or TableFinding(code, message, 0, line)
        self._found[message] = replace(known, count=known.count + 1)

    def rows(self) -> tuple[TableFinding, ...]:
        return tuple(self._found.values())


def read_ascend_table(path: str | os.PathLike[str]) -> AscendTable:
    """Read one CSV file of an Ascend profile, such as `kernel_details.csv` or `op_summary_*.csv`.

    Columns are found by name. Times and durations are integers in nanoseconds. Unknown columns keep
    their names, in lower case with underscores, and are numeric if every cell is a number.

    Parameters
    ----------
    path
        The file. Its name determines its kind: `kernel_details`, `op_summary`, `op_statistic`,
        `api_statistic`, `step_trace_time`, `step_trace`, `memory_record`, `operator_memory`,
        `npu_module_mem`, `l2_cache` or `operator_details`.

    Raises
    ------
    TraceError
        The name is not one of these, or the file has none of the columns.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> table = read_ascend_table("kernel_details.csv")  # doctest: +SKIP
    >>> table.frame.select("name", "duration_ns")  # doctest: +SKIP
    """
    path = Path(path)
    layout = layout_of(path.name)
    if layout is None:
        hint = "give kernel_details.csv, op_statistic*.csv, step_trace_time.csv or another of them"
        raise profile_error(path, "no table of an Ascend profile", "unknown_format", hint)
    findings = _Findings()
    header, rows = _cells(read_bytes(path), findings)
    if not _known(layout, header):
        reason = f"has none of the columns of {layout.name}"
        hint = "give the file as the profiler wrote it"
        raise profile_error(path, reason, "unknown_format", hint)
    return AscendTable(layout.name, path, _frame(layout, header, rows, findings), findings.rows())


def _cells(raw: bytes, findings: _Findings) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Split a file into its header and its rows; rows have their line numbers."""
    text = raw.removeprefix(b"\xef\xbb\xbf").decode(errors="replace").replace("\x00", "\ufffd")
    if "\ufffd" in text:
        findings.note("invalid_utf8", text[: text.index("\ufffd")].count("\n") + 1)
    if text.count('"') % 2:
        findings.note("unclosed_quote", text.count("\n") + 1)
    csv.field_size_limit(max(len(text) + 1, 131_072))
    reader = csv.reader(io.StringIO(text, newline=""))
    rows: list[tuple[int, list[str]]] = []
    header: list[str] = []
    line = 1
    for cells in reader:
        stripped = [cell.strip() for cell in cells]
        if any(stripped):
            if header:
                rows.append((line, stripped))
            else:
                header = stripped
        line = reader.line_num + 1
    for at, cells in rows:
        if len(cells) != len(header):
            findings.note("short_row" if len(cells) < len(header) else "long_row", at)
    return header, rows


def _known(layout: Layout, header: Sequence[str]) -> dict[str, tuple[int, Column]]:
    """Return the columns of a layout that a header contains: their positions, by name."""
    places = {name.lower(): place for place, name in reversed(list(enumerate(header)))}
    found = {}
    for column in layout.columns:
        place = next((places[name] for name in column.names if name in places), None)
        if place is not None:
            found[column.name] = (place, column)
    return found


def _frame(
    layout: Layout,
    header: Sequence[str],
    rows: list[tuple[int, list[str]]],
    findings: _Findings,
) -> pl.DataFrame:
    import polars as pl

    known = _known(layout, header)
    columns: list[pl.Series] = []
    for column in layout.columns[: layout.n_needed]:
        if column.name not in known:
            findings.note("missing_column", 1, column.names[0])
            columns.append(pl.Series(column.name, [None] * len(rows), _dtype(column)))
    for name, (place, column) in known.items():
        values = [_value(cell, column, line, findings) for line, cell in _column(rows, place)]
        columns.append(pl.Series(name, values, _dtype(column), strict=False))
    taken = {place for place, _ in known.values()}
    names = {series.name for series in columns}
    for place, title in enumerate(header):
        if place not in taken:
            name = _unique_name(_plain_name(title, place), names)
            names.add(name)
            columns.append(_unknown(name, [cell for _, cell in _column(rows, place)]))
    return pl.DataFrame(columns)


def _column(rows: Iterable[tuple[int, list[str]]], place: int) -> Iterable[tuple[int, str]]:
    return ((line, cells[place] if place < len(cells) else "") for line, cells in rows)


def _dtype(column: Column) -> Any:
    import polars as pl

    dtypes = {"text": pl.String, "number": pl.Float64}
    return dtypes.get(column.kind, pl.Int64)


def _value(cell: str, column: Column, line: int, findings: _Findings) -> Any:
    if cell in _MISSING:
        return None
    if column.kind == "text":
        return cell.strip('"')
    value = _decimal(cell)
    if value is None:
        findings.note("bad_number", line, column.names[0])
        return None
    is_stamp = column.name.endswith(("start_ns", "time_ns", "_at_ns"))
    if is_stamp and _ROUNDED_STAMP.fullmatch(cell):
        findings.note("rounded_stamp", line, column.names[0])
        return None
    return _OF_KIND[column.kind](value)


def _integer(value: Decimal) -> int | None:
    whole = value == value.to_integral_value() and abs(value) < _LARGEST_INTEGER
    return int(value) if whole else None


def _decimal(cell: str) -> Decimal | None:
    if not _NUMBER.fullmatch(cell):
        return None
    try:
        value = Decimal(cell)
    except InvalidOperation:
        return None
    return value if value.is_finite() and abs(value.adjusted()) < _MOST_DIGITS else None


_MOST_DIGITS: Final = 300


def _nanoseconds(microseconds: Decimal) -> int | None:
    """Round to nanoseconds, half to even, as the timeline reader does."""
    if microseconds.adjusted() > 16:  # noqa: PLR2004 - no time in 64 bits is longer
        return None
    ns = int((microseconds * 1000).to_integral_value(ROUND_HALF_EVEN))
    return ns if abs(ns) <= _LARGEST_NS else None


_OF_KIND: Final[dict[str, Callable[[Decimal], float | int | None]]] = {
    "number": float,
    "integer": _integer,
    "microseconds": _nanoseconds,
}


def _plain_name(title: str, place: int) -> str:
    """Convert a title to lower case with underscores, and % to percent."""
    words = re.sub(r"\W+", "_", title.lower().replace("%", " percent")).strip("_")
    return words or f"column_{place + 1}"


def _unique_name(name: str, names: Collection[str]) -> str:
    """Return the name, with a number if another column has it: msprof repeats titles."""
    numbered = (f"{name}_{number}" for number in count(2))
    return next(each for each in chain([name], numbered) if each not in names)


def _unknown(name: str, cells: list[str]) -> pl.Series:
    """Convert an unlisted column; to numbers if all cells are numbers."""
    import polars as pl

    given = [None if cell in _MISSING else cell for cell in cells]
    if all(cell is None or _NUMBER.fullmatch(cell) for cell in given) and any(given):
        return pl.Series(name, [None if it is None else float(it) for it in given], pl.Float64)
    return pl.Series(name, given, pl.String)
