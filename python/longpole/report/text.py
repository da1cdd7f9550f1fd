"""Writes answers as text, for a terminal of any width."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self, TextIO

from longpole.report.blocks import Chart, Entry, Headline, Notes, Sentence, Table, shown
from longpole.words.wording import escape, share, short_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.report.blocks import Bar, Block, Cell, Column, Style

_ASCII: Final = str.maketrans({"µ": "u", "…": "~", "·": "-", "█": "#", "×": "x"})  # noqa: RUF001
_STYLES: Final = {"bold": "1", "dim": "2", "good": "32", "warn": "33", "bad": "31"}
_WIDTH_OF_PIPES: Final = 100


@dataclass(frozen=True, slots=True)
class Terminal:
    """The width, colours and encoding of stdout."""

    width: int = _WIDTH_OF_PIPES
    has_color: bool = False
    encoding: str = "utf-8"

    @classmethod
    def of(cls, stream: TextIO, color: str = "auto") -> Self:
        """Detect the terminal of a stream; `color` is `auto`, `always` or `never`."""
        is_terminal = stream.isatty()
        width = shutil.get_terminal_size((_WIDTH_OF_PIPES, 24)).columns
        encoding = stream.encoding or "ascii"
        return cls(width, _wants_color(color, is_terminal=is_terminal), encoding)

    def styled(self, text: str, style: Style) -> str:
        """Apply a style to a text, if colours are enabled."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.has_color else text

    def encodable(self, text: str) -> str:
        """Replace characters that the encoding of stdout does not have."""
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


NO_ROOM: Final = "Columns that do not fit"
_GUTTER: Final = "  "
_SHORTEST_NAME: Final = 24
_WIDEST_PARAGRAPH: Final = 120
_LONGEST_BAR: Final = 16
_LEAST_COLUMNS: Final = 2
_BEFORE_UNIT: Final = re.compile(
    r"(?<=\d) (?=(?:%|(?:[mµn]?s|min|h|[KMG]?i?B|[GT]?FLOPs?|[GT]B/s|[GT]?FLOP/s|[MG]Hz)\b))"
)
_NO_BREAK: Final = "\x1f"
"""A space at which no line ends, while a paragraph is wrapped; escaped texts do not have it."""
_NOTHING: Final = frozenset(("-", "0", "0 %", "0 s", "0 B"))

# Columns that a table omits if it is too wide, least informative first; then from the right.
_LEFT_OUT_FIRST: Final = (
    "stack",
    "shapes",
    "strides",
    "dtypes",
    "std",
    "p25",
    "p75",
    "correlation",
    "external_id",
    "position",
    "start_ns",
    "end_ns",
    "time_ns",
    "linked_by",
    "named_by",
    "data_type",
    "n_without_size",
    "n_changes",
    "occupancy_limit",
    "grid_blocks",
    "block_threads",
    "window",
    "min",
    "max",
    "mean",
    "work_class",
    "longest_event",
    "FLOP/B",
    "type",
    "GB/s",
    "TFLOP/s",
    "is_short",
    "is_slow_call",
    "is_long_delay",
    "n_short",
    "n_slow_calls",
    "n_delayed",
    "median",
)


def text(blocks: Sequence[Block], terminal: Terminal | None = None) -> str:
    """Write blocks as text, indented below a headline.

    Examples
    --------
    >>> from longpole.report.blocks import Column
    >>> columns = (Column("kernel", "name"), Column("time", "duration"))
    >>> print(text([Sentence("Two kernels:"), Table(columns, [("gemm", 2500), ("relu", 90)])]))
    Two kernels:
    <BLANKLINE>
    kernel     time
    gemm    2.50 µs
    relu      90 ns
    """
    page = _Page(terminal or Terminal(), "  " if _has_headline(blocks) else "")
    lines: list[str] = []
    before: Block | None = None
    for block in blocks:
        written = page.lines(block)
        if lines and written and not _are_close(before, block):
            lines.append("")
        lines += written
        before = block
    return page.terminal.encodable("\n".join(lines))


def _has_headline(blocks: Sequence[Block]) -> bool:
    return bool(blocks) and isinstance(blocks[0], Headline)


def _are_close(before: Block | None, block: Block) -> bool:
    """Whether there is no blank line between two blocks: in a paragraph or below a headline."""
    if isinstance(block, Notes):
        return isinstance(before, Headline)
    return isinstance(before, Sentence) and isinstance(block, Sentence)


@dataclass(frozen=True, slots=True)
class _Page:
    terminal: Terminal
    indent: str

    def lines(self, block: Block) -> list[str]:
        match block:
            case Headline(text):
                return [self.terminal.styled(escape(text), "bold")]
            case Sentence(text):
                return self.paragraph(text)
            case Table(columns, rows):
                return self.table(columns, rows)
            case Chart(bars):
                return self.chart(bars)
            case Entry():
                return self.entry(block)
            case Notes(items, are_numbered):
                numbered = [f"{number}. {item}" for number, item in enumerate(items, 1)]
                lines = numbered if are_numbered else items
                return [line for item in lines for line in self.paragraph(item)]

    def paragraph(self, text: str, more: str = "") -> list[str]:
        """Wrap a text into lines of the width."""
        indent = self.indent + more
        lines = textwrap.wrap(
            _BEFORE_UNIT.sub(_NO_BREAK, escape(text)),
            min(self.terminal.width, _WIDEST_PARAGRAPH),
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
        return [line.replace(_NO_BREAK, " ") for line in lines]

    def entry(self, entry: Entry) -> list[str]:
        label = self.terminal.styled(entry.label, entry.style)
        lines = [f"{self.indent}{label}  {escape(entry.title)}"]
        return [*lines, *(line for each in entry.sentences for line in self.paragraph(each, "  "))]

    def chart(self, bars: Sequence[Bar]) -> list[str]:
        """Draw bars, scaled so that the largest share fits."""
        greatest = max((bar.share for bar in bars), default=0) or 1
        cells = [
            [share(bar.share), bar.amount, "█" * round(_LONGEST_BAR * bar.share / greatest)]
            for bar in bars
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return [
            self._line([*cell, escape(bar.label)], [*widths, 0], (False, False, True, True))
            for cell, bar in zip(cells, bars, strict=True)
        ]

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> list[str]:
        """Align cells under their titles, which are dim; list the columns that do not fit."""
        cells = zip(*rows, strict=True) if rows else ([] for _ in columns)
        everything = [
            (column, [shown(column, value) for value in values])
            for column, values in zip(columns, cells, strict=True)
        ]
        left_out = self._left_out(everything)
        kept = [pair for at, pair in enumerate(everything) if at not in left_out]
        columns, texts = [column for column, _ in kept], [texts for _, texts in kept]
        titles = [column.title for column in columns]
        room = self._room(columns, texts)
        fitted = list(zip(*_fitted(columns, texts, room), strict=True)) if rows else []
        widths = [max(map(len, cells)) for cells in zip(titles, *fitted, strict=True)]
        sides = [column.is_left for column in columns]
        lines = [self._line(cells, widths, sides) for cells in (titles, *fitted)]
        nothing = [] if rows else [f"{self.indent}(no rows)"]
        unseen = [everything[at][0].title for at in sorted(left_out)]
        more = ["", *self.paragraph(f"{NO_ROOM}: {', '.join(unseen)}.")] if unseen and rows else []
        return [self.terminal.styled(lines[0], "dim"), *lines[1:], *nothing, *more]

    def _left_out(self, everything: Sequence[tuple[Column, Sequence[str]]]) -> set[int]:
        """Return the indices of the columns to leave out so that the others fit.

        The first column, strings and columns that must be shown are kept, and at least two
        columns.
        """
        widths = [_least_width(column, texts) + len(_GUTTER) for column, texts in everything]
        excess = len(self.indent) + sum(widths) - len(_GUTTER) - self.terminal.width
        telling = {
            at: _telling(column, texts)
            for at, (column, texts) in enumerate(everything)
            if at and not column.is_needed
        }
        optional = (
            at
            for at, place in telling.items()
            if everything[at][0].type != "text" or place < len(_LEFT_OUT_FIRST)
        )
        order = sorted(optional, key=lambda at: (telling[at], -at))
        left_out: set[int] = set()
        for at in order:
            if excess <= 0 or len(everything) - len(left_out) <= _LEAST_COLUMNS:
                break
            left_out.add(at)
            excess -= widths[at]
        return left_out

    def _room(self, columns: Sequence[Column], texts: Sequence[Sequence[str]]) -> int:
        """Return the space for names that the other columns leave."""
        fixed = [
            _least_width(column, cells) + len(_GUTTER)
            for column, cells in zip(columns, texts, strict=True)
            if column.type != "name"
        ]
        n_names = len(columns) - len(fixed)
        free = self.terminal.width - len(self.indent) - sum(fixed) - len(_GUTTER) * (n_names - 1)
        return max(free // max(n_names, 1), _SHORTEST_NAME)

    def _line(self, cells: Sequence[str], widths: Sequence[int], sides: Sequence[bool]) -> str:
        aligned = [
            cell.ljust(width) if is_left else cell.rjust(width)
            for cell, width, is_left in zip(cells, widths, sides, strict=True)
        ]
        return self.indent + _GUTTER.join(aligned).rstrip()


def _fitted(
    columns: Sequence[Column], texts: Sequence[Sequence[str]], room: int
) -> Iterator[Sequence[str]]:
    """Shorten names to a given length, and escape all texts."""
    for column, cells in zip(columns, texts, strict=True):
        yield short_names(cells, room) if column.type == "name" else list(map(escape, cells))


def _least_width(column: Column, texts: Sequence[str]) -> int:
    """Return the width below which a column is not shown."""
    least = max(len(escape(text)) for text in (column.title, *texts))
    if column.type != "name":
        return least
    return max(len(column.title), min(least, _SHORTEST_NAME))


def _telling(column: Column, texts: Sequence[str]) -> int:
    """Return how informative a column is: least if all its cells are unknown or zero."""
    if all(text in _NOTHING for text in texts):
        return -1
    title = column.title.removesuffix(" time")
    places = (
        place
        for place, words in enumerate(_LEFT_OUT_FIRST)
        if title == words or title.endswith(f"_{words}")
    )
    return next(places, len(_LEFT_OUT_FIRST))
