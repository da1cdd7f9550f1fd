"""A list of rows on standard output, for people and for programs.

What stands in the cells was printed by somebody else's program: it is escaped
for the terminal, for a spreadsheet and for Markdown, and left as it is in JSON.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["FORMATS", "Format", "Row", "envelope", "print_rows", "printable", "span", "whole"]

Format = Literal["text", "json", "jsonl", "csv", "md"]
Row = dict[str, Any]

FORMATS: Final[tuple[Format, ...]] = ("text", "json", "jsonl", "csv", "md")
# A spreadsheet takes a text that begins so for a formula.
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\0")
UNIT: Final = re.compile(r"_(ns|bytes|mhz|c|w|share)$")
CELL_CHARACTERS: Final = 60
SPANS_NS: Final = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns"))


def print_rows(
    rows: Sequence[Row],
    columns: Mapping[str, Callable[[Any], str]],
    write_as: Format,
    *,
    around: Row,
) -> None:
    """Print rows.

    Parameters
    ----------
    rows
        What to print; for programs with all that is in them.
    columns
        The columns for people, and how each is written.
    write_as
        The format.
    around
        The envelope of the JSON form.
    """
    match write_as:
        case "json":
            text = json.dumps({**around, "data": rows}, indent=1) + "\n"
        case "jsonl":
            text = "".join(json.dumps(row) + "\n" for row in rows)
        case "csv":
            text = _csv(rows, list(rows[0] if rows else columns))
        case "md":
            text = _markdown(columns, _cells(rows, columns))
        case "text":
            text = _text(columns, _cells(rows, columns))
    sys.stdout.write(text)


def envelope(
    schema: str, inputs: Iterable[str], *, status: str = "ok", warnings: Sequence[str] = ()
) -> Row:
    """Give what stands around the data in JSON."""
    return {
        "schema": schema,
        "tool": f"longpole {version('longpole')}",
        "inputs": list(inputs),
        "scope": {},
        "status": status,
        "warnings": list(warnings),
        "data": None,
        "truncated": False,
    }


def printable(value: Any) -> str:
    """Write a value so that it can neither move the cursor nor break the line."""
    text = "-" if value is None or value == "" else str(value)
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def whole(number: float | None) -> float | None:
    """Give an integer where that is the same number."""
    return int(number) if number is not None and number.is_integer() else number


def span(duration_ns: float | None) -> str:
    """Write a length of time with a unit that fits it."""
    if duration_ns is None:
        return "-"
    size, unit = next((pair for pair in SPANS_NS if duration_ns >= pair[0]), SPANS_NS[-1])
    return f"{duration_ns / size:.4g} {unit}"


def _cells(rows: Iterable[Row], columns: Mapping[str, Callable[[Any], str]]) -> list[list[str]]:
    return [
        [_shorten(printable(write(row.get(name)))) for name, write in columns.items()]
        for row in rows
    ]


def _shorten(text: str) -> str:
    return text if len(text) <= CELL_CHARACTERS else text[: CELL_CHARACTERS - 3] + "..."


def _text(columns: Iterable[str], cells: Sequence[Sequence[str]]) -> str:
    table = [[_heading(name) for name in columns], *cells]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    )
    return "\n".join(lines) + "\n"


def _heading(name: str) -> str:
    """Name a column for people; its cells say their units themselves."""
    return UNIT.sub("", name).replace("_", " ")


def _markdown(columns: Iterable[str], cells: Sequence[Sequence[str]]) -> str:
    names = [_heading(name) for name in columns]
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in cells]
    table = [names, ["---"] * len(names), *escaped]
    return "".join(f"| {' | '.join(row)} |\n" for row in table)


def _csv(rows: Iterable[Row], names: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_field(row.get(name)) for name in names] for row in rows)
    return text.getvalue()


def _field(value: Any) -> Any:
    if isinstance(value, str):
        return "'" + value if value.startswith(FORMULA_STARTS) else value
    return json.dumps(value) if isinstance(value, list | dict | tuple) else value
