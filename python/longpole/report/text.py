"""Answers as text, for a terminal of any width."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.report.blocks import Chart, Entry, Headline, Notes, Sentence, Table, shown
from longpole.report.terminal import Terminal
from longpole.wording import escape, share, short_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.report.blocks import Bar, Block, Cell, Column

__all__ = ["text"]

_GUTTER: Final = "  "
_SHORTEST_NAME: Final = 24
_WIDEST_PARAGRAPH: Final = 120
_LONGEST_BAR: Final = 16


def text(blocks: Sequence[Block], terminal: Terminal | None = None) -> str:
    """Write blocks one below the other, indented below a headline.

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
    """Whether two blocks have no blank line between them: those of a paragraph or a headline."""
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
        """Break a text into lines of the width."""
        indent = self.indent + more
        return textwrap.wrap(
            escape(text),
            min(self.terminal.width, _WIDEST_PARAGRAPH),
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )

    def entry(self, entry: Entry) -> list[str]:
        label = self.terminal.styled(entry.label, entry.style)
        lines = [f"{self.indent}{label}  {escape(entry.title)}"]
        return [*lines, *(line for each in entry.sentences for line in self.paragraph(each, "  "))]

    def chart(self, bars: Sequence[Bar]) -> list[str]:
        """Draw bars that are as long as the greatest share allows."""
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
        """Align cells under their titles, which are dim."""
        titles = [column.title for column in columns]
        texts = [
            [shown(column, value) for value in values]
            for column, values in zip(columns, zip(*rows, strict=True), strict=False)
        ]
        fitted = list(zip(*self._fitted(columns, texts), strict=True)) if rows else []
        widths = [max(map(len, cells)) for cells in zip(titles, *fitted, strict=True)]
        sides = [column.is_left for column in columns]
        lines = [self._line(cells, widths, sides) for cells in (titles, *fitted)]
        nothing = [] if rows else [f"{self.indent}(no rows)"]
        return [self.terminal.styled(lines[0], "dim"), *lines[1:], *nothing]

    def _fitted(
        self, columns: Sequence[Column], texts: Sequence[Sequence[str]]
    ) -> Iterator[Sequence[str]]:
        """Shorten names to the room that the other columns leave, and escape all."""
        cells = [list(map(escape, column)) for column in texts]
        fixed = [
            max(map(len, (column.title, *cell))) + len(_GUTTER)
            for column, cell in zip(columns, cells, strict=True)
            if column.type != "name"
        ]
        n_names = len(columns) - len(fixed)
        free = self.terminal.width - len(self.indent) - sum(fixed) - len(_GUTTER) * (n_names - 1)
        room = max(free // max(n_names, 1), _SHORTEST_NAME)
        for column, cell, whole in zip(columns, cells, texts, strict=True):
            yield short_names(whole, room) if column.type == "name" else cell

    def _line(self, cells: Sequence[str], widths: Sequence[int], sides: Sequence[bool]) -> str:
        aligned = [
            cell.ljust(width) if is_left else cell.rjust(width)
            for cell, width, is_left in zip(cells, widths, sides, strict=True)
        ]
        return self.indent + _GUTTER.join(aligned).rstrip()
