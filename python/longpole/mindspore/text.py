"""Reads the text files of a profile: lines, CSV rows by the names of their columns, numbers.

A last line without a line end may have been cut, and what its last number would have been is not
known. Such a line is left out. A field may have a tab
behind it, and `N/A` stands for what was not recorded.
"""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING, Any, Final

from longpole.mindspore.errors import ProfileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from longpole.mindspore.findings import Findings

__all__ = ["Columns", "json_of", "lines_of", "number", "rows_of", "stamp", "table_of"]

_MARK: Final = b"\xef\xbb\xbf"
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_SCIENTIFIC: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?[eE][+-]?[0-9]+")
_HIGHEST: Final = 2**63


def lines_of(
    path: Path, findings: Findings, *, keep_words: bool = False
) -> Iterator[tuple[int, str]]:
    """Give each whole line that is not empty, with its number (from 1).

    With `keep_words`, a last line that was cut is given up to its last space.
    """
    with path.open("rb") as file:
        for place, line in enumerate(file, 1):
            if place == 1 and line.startswith(_MARK):
                findings.add("byte_order_mark", path, place)
                line = line[len(_MARK) :]  # noqa: PLW2901 (the same line without the mark)
            if not line.endswith(b"\n"):
                findings.add("cut_line", path, place)
                line = line.rpartition(b" ")[0] if keep_words else b""  # noqa: PLW2901
            if text := _decoded(line, path, place, findings).strip("\r\n"):
                yield place, text


def _decoded(line: bytes, path: Path, place: int, findings: Findings) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        findings.add("bad_utf8", path, place)
        return line.decode(errors="replace")


class Columns:
    """Where the columns of a CSV file stand, by name; `needed` must be there.

    Raises
    ------
    ProfileError
        The file has no header, or a needed column is missing.
    """

    def __init__(
        self,
        path: Path,
        header: Sequence[str],
        needed: Mapping[str, Sequence[str]],
        findings: Findings,
        known: Sequence[str] = (),
    ) -> None:
        names = [name.strip() for name in header]
        self.count = len(names)
        self._path, self._findings = path, findings
        self._places = {key: _place(names, alias) for key, alias in needed.items()}
        missing = [key for key, place in self._places.items() if place < 0]
        if missing:
            aliases = [needed[key][0] for key in missing]
            raise ProfileError(
                path,
                "missing_column",
                f"the header has no column {', '.join(map(repr, aliases))}",
                line=1,
                hint=f"the columns are {', '.join(map(repr, names))[:300]}",
            )
        expected = {name for alias in needed.values() for name in alias} | set(known)
        for name in names:
            if name not in expected:
                findings.add("extra_columns", path, 1, repr(name))

    def place(self, key: str) -> int:
        """Give the place of a needed column."""
        return self._places[key]

    def whole(self, rows: Iterable[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
        """Give the rows with a field for each column; the others are findings."""
        for line, row in rows:
            if len(row) == self.count:
                yield line, row
            else:
                self._findings.add("bad_row", self._path, line)


def _place(names: Sequence[str], aliases: Sequence[str]) -> int:
    return next((names.index(alias) for alias in aliases if alias in names), -1)


def table_of(
    path: Path, findings: Findings, hint: str | None = None
) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """Give the header of a CSV file, and the rows below it.

    Raises
    ------
    ProfileError
        The file is empty.
    """
    rows = rows_of(path, findings)
    _, header = next(rows, (0, None))
    if header is None:
        raise ProfileError(path, "empty_file", "the file is empty", hint=hint)
    return header, rows


def rows_of(path: Path, findings: Findings) -> Iterator[tuple[int, list[str]]]:
    """Give each row of a CSV file, the header first; a quote cannot reach over lines."""
    for place, line in lines_of(path, findings):
        if '"' not in line:
            yield place, line.split(",")
            continue
        try:
            [row] = csv.reader([line], strict=True)
        except (csv.Error, ValueError):
            findings.add("bad_row", path, place)
            continue
        yield place, row


def stamp(text: str, path: Path, line: int, findings: Findings) -> int | None:
    """Read a whole number of at most 64 bits; what is none is a finding and None."""
    try:
        value = int(text) if text.isdecimal() else _unusual(text.strip())
    except ValueError:
        damaged = _SCIENTIFIC.fullmatch(text.strip()) is not None
        findings.add("damaged_stamp" if damaged else "bad_number", path, line, repr(text[:40]))
        return None
    if not -_HIGHEST <= value < _HIGHEST:
        findings.add("bad_number", path, line, repr(text[:40]))
        return None
    return value


def _unusual(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError(text)
    return int(text)


def number(text: str, path: Path, line: int, findings: Findings) -> float | None:
    """Read a finite number; what is none is a finding and None."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not -1e300 < value < 1e300:  # noqa: PLR2004 (neither nan nor infinite)
        findings.add("bad_number", path, line, repr(text[:40]))
        return None
    return value


def json_of(path: Path, findings: Findings) -> Any:
    """Read a JSON file; None, with a finding, where it is damaged."""
    try:
        return json.loads(path.read_bytes().removeprefix(_MARK).decode(errors="replace"))
    except (ValueError, RecursionError) as error:
        findings.add("bad_json", path, None, str(error)[:80])
        return None
