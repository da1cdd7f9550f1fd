"""The terminal an answer is shown on: its width, its colours, what it can write."""

from __future__ import annotations

import os
import shutil
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Self, TextIO

from longpole.wording import escape, short_names

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Column", "Terminal"]

_ASCII: Final = str.maketrans({"µ": "u", "…": "~", "·": "-", "█": "#", "░": "."})
_STYLES: Final = {"bold": "1", "dim": "2", "good": "32", "warn": "33", "bad": "31"}
_GUTTER: Final = "  "
_NARROWEST_NAME: Final = 12
_WIDEST: Final = 120
_WIDTH_OF_PIPES: Final = 100


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its title, and on which side its cells stand.

    The cells of a column of names are shortened to what the others leave of the width.
    """

    title: str
    align: Literal["left", "right"] = "right"
    has_names: bool = False


@dataclass(frozen=True, slots=True)
class Terminal:
    """What stdout can show."""

    width: int = _WIDTH_OF_PIPES
    has_color: bool = False
    encoding: str = "utf-8"

    @classmethod
    def of(cls, stream: TextIO, color: str = "auto") -> Self:
        """Look at a stream and the environment; `color` is `auto`, `always` or `never`."""
        is_terminal = stream.isatty()
        width = shutil.get_terminal_size((_WIDTH_OF_PIPES, 24)).columns
        encoding = stream.encoding or "ascii"
        return cls(min(width, _WIDEST), _wants_color(color, is_terminal=is_terminal), encoding)

    def styled(self, text: str, style: str) -> str:
        """Put a text in a style, where there are colours."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.has_color else text

    def paragraph(self, text: str, indent: str = "") -> list[str]:
        """Break a text into lines of the width."""
        return textwrap.wrap(
            text,
            self.width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )

    def table(
        self, columns: Sequence[Column], rows: Sequence[Sequence[str]], indent: str = "  "
    ) -> list[str]:
        """Align cells under their titles, which are dim."""
        rows = self._fitted(columns, rows, len(indent))
        titles = [column.title for column in columns]
        widths = [max(map(len, cells)) for cells in zip(titles, *rows, strict=True)]
        lines = [_line(columns, widths, cells, indent) for cells in (titles, *rows)]
        return [self.styled(lines[0], "dim"), *lines[1:]]

    def _fitted(
        self, columns: Sequence[Column], rows: Sequence[Sequence[str]], taken: int
    ) -> list[list[str]]:
        """Shorten names to the room that the other columns leave, and escape all."""
        if not rows:
            return []
        cells = [list(map(escape, texts)) for texts in zip(*rows, strict=True)]
        fixed = [
            max(map(len, (column.title, *texts))) + len(_GUTTER)
            for column, texts in zip(columns, cells, strict=True)
            if not column.has_names
        ]
        room = max(self.width - taken - sum(fixed), _NARROWEST_NAME)
        for number, column in enumerate(columns):
            if column.has_names:
                cells[number] = short_names([row[number] for row in rows], room)
        return [list(row) for row in zip(*cells, strict=True)]

    def encodable(self, text: str) -> str:
        """Replace what the encoding of stdout cannot write."""
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError:
            plain = text.translate(_ASCII)
            return plain.encode(self.encoding, "backslashreplace").decode(self.encoding)
        return text


def _wants_color(color: str, *, is_terminal: bool) -> bool:
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("CLICOLOR_FORCE", "0") != "0" or os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal and os.environ.get("TERM") != "dumb"


def _line(
    columns: Sequence[Column], widths: Sequence[int], cells: Sequence[str], indent: str
) -> str:
    aligned = [
        text.ljust(width) if column.align == "left" else text.rjust(width)
        for column, width, text in zip(columns, widths, cells, strict=True)
    ]
    return indent + _GUTTER.join(aligned).rstrip()
