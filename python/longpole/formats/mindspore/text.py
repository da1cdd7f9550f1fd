"""Reads the text files of a profile: lines, CSV rows by column names, numbers.

A last line without a line end may be truncated, with an unknown last number, and is left out. A
field may be followed by a tab, and `N/A` means not recorded.
"""

from __future__ import annotations

import csv
import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from longpole.files.opening import open_file, read_bytes
from longpole.formats.mindspore.findings import ProfileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from longpole.formats.mindspore.findings import Findings

_MARK: Final = b"\xef\xbb\xbf"
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_SCIENTIFIC: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?[eE][+-]?[0-9]+")
_HIGHEST: Final = 2**63


class TextFile:
    """A file read line by line; problems are reported with their line."""

    def __init__(self, path: Path, findings: Findings) -> None:
        self.path = path
        self._findings = findings
        self.line = 0

    def report(self, code: str, detail: str | None = None, line: int | None = None) -> None:
        """Add a finding about the given line, by default the one yielded last."""
        self._findings.add(code, self.path, line or self.line, detail)

    def lines(self, *, keep_words: bool = False) -> Iterator[str]:
        """Yield each complete non-empty line.

        With `keep_words`, a truncated last line is yielded up to its last space.
        """
        with open_file(self.path, is_named=False) as file:
            for self.line, line in enumerate(file, 1):
                if self.line == 1 and line.startswith(_MARK):
                    self.report("byte_order_mark")
                    line = line[len(_MARK) :]  # noqa: PLW2901 - the line without the byte order mark
                if not line.endswith(b"\n"):
                    self.report("cut_line")
                    line = line.rpartition(b" ")[0] if keep_words else b""  # noqa: PLW2901
                if text := self._decoded(line).strip("\r\n"):
                    yield text

    def _decoded(self, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError:
            self.report("bad_utf8")
            return line.decode(errors="replace")

    def stamp(self, text: str) -> int | None:
        """Parse an integer of at most 64 bits; otherwise add a finding and return None."""
        try:
            value = int(text) if text.isdecimal() else _unusual(text.strip())
        except ValueError:
            damaged = _SCIENTIFIC.fullmatch(text.strip()) is not None
            self.report("damaged_stamp" if damaged else "bad_number", repr(text[:40]))
            return None
        if not -_HIGHEST <= value < _HIGHEST:
            self.report("bad_number", repr(text[:40]))
            return None
        return value

    def number(self, text: str) -> float | None:
        """Parse a finite number; otherwise add a finding and return None."""
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not -1e300 < value < 1e300:  # noqa: PLR2004 - neither nan nor infinite
            self.report("bad_number", repr(text[:40]))
            return None
        return value


def _unusual(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError(text)
    return int(text)


def exact_ns(text: str, scale: int, most_ns: int = _HIGHEST) -> int | None:
    r"""Parse a decimal number in units of `scale` ns, exactly; None below 0 or above the maximum.

    Examples
    --------
    >>> exact_ns("438068.41592", 1_000_000), exact_ns("1736408883704643.212\t", 1000)
    (438068415920, 1736408883704643212)
    """
    try:
        value = Decimal(text.strip()) * scale
    except ArithmeticError:  # not a number, or an exponent beyond that of Decimal
        return None
    return round(value) if value.is_finite() and 0 <= value < most_ns else None


class CsvFile(TextFile):
    """A CSV file with a header; `header` has the names of its columns.

    Raises
    ------
    ProfileError
        The file is empty; `hint` says what to do.
    """

    def __init__(self, path: Path, findings: Findings, hint: str | None = None) -> None:
        super().__init__(path, findings)
        self._rows = self._split()
        header = next(self._rows, None)
        if header is None:
            raise ProfileError(path, "empty_file", "the file is empty", hint=hint)
        self.header = [name.strip() for name in header]
        self._places: dict[str, int] = {}

    def _split(self) -> Iterator[list[str]]:
        """Yield each row; quotes cannot span lines."""
        for line in self.lines():
            if '"' not in line:
                yield line.split(",")
                continue
            try:
                [row] = csv.reader([line], strict=True)
            except (csv.Error, ValueError):
                self.report("bad_row")
                continue
            yield row

    def find(self, needed: Mapping[str, Sequence[str]], known: Sequence[str] = ()) -> None:
        """Find the required columns, each by one of its names; other columns are a finding.

        Raises
        ------
        ProfileError
            A required column is missing.
        """
        self._places = {key: self._place(names) for key, names in needed.items()}
        missing = [needed[key][0] for key, place in self._places.items() if place < 0]
        if missing:
            raise ProfileError(
                self.path,
                "missing_column",
                f"the header has no column {', '.join(map(repr, missing))}",
                line=1,
                hint=f"the columns are {', '.join(map(repr, self.header))[:300]}",
            )
        expected = {name for names in needed.values() for name in names} | set(known)
        for name in self.header:
            if name not in expected:
                self.report("extra_columns", repr(name), 1)

    def _place(self, names: Sequence[str]) -> int:
        return next((self.header.index(name) for name in names if name in self.header), -1)

    def name_of(self, key: str) -> str:
        """Return the name of a required column in the file."""
        return self.header[self._places[key]]

    def rows(self, *, surplus: str = "bad_row") -> Iterator[dict[str, str]]:
        """Yield the required cells of each row that has a cell for each column.

        Other rows are findings; those with more cells are `surplus`.
        """
        for row in self._rows:
            if len(row) == len(self.header):
                yield {key: row[place].strip() for key, place in self._places.items()}
            else:
                self.report("bad_row" if len(row) < len(self.header) else surplus)


def json_of(path: Path, findings: Findings) -> Any:
    """Read a JSON file; None, with a finding, if it is damaged."""
    try:
        return json.loads(
            read_bytes(path, is_named=False).removeprefix(_MARK).decode(errors="replace")
        )
    except (ValueError, RecursionError) as error:
        findings.add("bad_json", path, None, str(error)[:80])
        return None
