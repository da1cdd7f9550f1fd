"""The parts of an answer for a person; the writers format each block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from longpole.words.wording import change, count, duration, number, share, short_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Cell = str | int | float | bool | None
"""A plain value; None if unknown."""

Type = Literal[
    "text",
    "name",
    "number",
    "count",
    "duration",
    "share",
    "change",
    "flag",
    "event",
    "row_of_event",
]
"""An `event` is a row of `Trace.events`; `row_of_event` is the event that the row describes."""
Style = Literal["bold", "dim", "good", "warn", "bad"]

_LEFT: Final = ("text", "name")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its title, and the type of its cells.

    Cells of the type `name` can be shortened to the width of the page, other cells never.
    """

    title: str
    type: Type = "text"
    is_needed: bool = False
    """Whether it is shown even if other columns do not fit."""

    @property
    def is_left(self) -> bool:
        """Whether its cells are aligned to the left."""
        return self.type in _LEFT


@dataclass(frozen=True, slots=True)
class Headline:
    """The subject of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of plain values under typed columns."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class Bar:
    """One part of a whole: its label, its share, and what the share refers to."""

    share: float
    amount: str
    label: str
    color: str = "bar"
    """Name of the colour in the style sheet of the page."""


@dataclass(frozen=True, slots=True)
class Chart:
    """The parts of a whole as bars."""

    bars: Sequence[Bar]


@dataclass(frozen=True, slots=True)
class Entry:
    """A labelled item with sentences about it, such as a warning."""

    label: str
    style: Style
    title: str
    sentences: Sequence[str]


@dataclass(frozen=True, slots=True)
class Notes:
    """Further remarks as a list."""

    items: Sequence[str]
    are_numbered: bool = False
    """Whether they are steps in the order in which to do them."""


Value = str | Callable[[Any], Cell]
"""How to get a cell from a row: a key or field of the row, or a function of it."""

Block = Headline | Sentence | Table | Chart | Entry | Notes


def tabulated(rows: Iterable[Any], columns: Mapping[Column, Value]) -> Table:
    """Create a table: each column has a key or field of a row, or a function of the row.

    Examples
    --------
    >>> columns = {Column("time", "duration"): "ns", Column("call"): lambda row: f"#{row['n']}"}
    >>> tabulated([{"ns": 5, "n": 1}], columns).rows
    [[5, '#1']]
    """
    cells = [[_cell(row, value) for value in columns.values()] for row in rows]
    return Table(tuple(columns), cells)


def without_empty_columns(table: Table) -> Table:
    """Leave out the columns in which all cells are unknown.

    Examples
    --------
    >>> table = Table((Column("call"), Column("bytes")), [["copy", None], ["send", None]])
    >>> without_empty_columns(table).rows
    [['copy'], ['send']]
    """
    kept = [
        at for at in range(len(table.columns)) if any(row[at] is not None for row in table.rows)
    ]
    rows = [[row[at] for at in kept] for row in table.rows]
    return Table([table.columns[at] for at in kept], rows)


def _cell(row: Any, value: Value) -> Cell:
    if not isinstance(value, str):
        return value(row)
    found: Cell = row[value] if isinstance(row, dict) else getattr(row, value)
    return found


def written(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], widest_name: int
) -> list[list[tuple[str, str]]]:
    """Return the text of each cell, and that text with names shortened.

    Names are shortened column by column, so that different names remain different.

    Examples
    --------
    >>> written([Column("kernel", "name")], [["nvjet_tst_128x64_64x8_1x2_h_bz_NTT"]], 40)
    [[('nvjet_tst_128x64_64x8_1x2_h_bz_NTT', 'gemm 128x64 bf16 (nvjet)')]]
    """
    cells = []
    for place, column in enumerate(columns):
        texts = [shown(column, row[place]) for row in rows]
        short = short_names(texts, widest_name) if column.type == "name" else texts
        cells.append(list(zip(texts, short, strict=True)))
    return [list(row) for row in zip(*cells, strict=True)]


def shown(column: Column, value: Cell) -> str:
    """Format a cell with the unit of its column.

    Examples
    --------
    >>> shown(Column("time", "duration"), 46_800), shown(Column("share", "share"), 0.468)
    ('46.8 µs', '46.8 %')
    >>> shown(Column("MiB", "number"), 62_398.34), shown(Column("device", "number"), 0)
    ('62,398', '0')
    >>> shown(Column("bytes", "count"), None), shown(Column("waited", "flag"), True)
    ('-', 'yes')
    """
    if value is None:
        return "-"
    if isinstance(value, str) or column.type not in _WORDS:
        return str(value)
    return _WORDS[column.type](value)


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) and abs(value) < 1 << 64 else number(value)


_WORDS: Final[dict[str, Callable[[float], str]]] = {
    "duration": duration,
    "share": share,
    "change": change,
    "count": count,
    "number": _number,
    "flag": lambda value: "yes" if value else "no",
}


# Colour of each kind of time, by its name in the style sheet of the page.


_COLORS: Final = {
    "kernel": "kernel",
    "communication": "communication",
    "communication, waiting included": "communication",
    "transfer": "communication",
    "copy": "copy",
    "memcpy or memset": "copy",
    "operator": "operator",
    "host gap": "operator",
    "waiting for launch": "operator",
    "runtime": "runtime",
    "driver": "runtime",
    "data loading": "data",
    "annotation": "annotation",
    "idle": "annotation",
    "frame": "operator",
}
_OTHER: Final = "wait"

LEGEND: Final = {
    "kernel": "kernels",
    "communication": "communication",
    "copy": "memcpy and memset",
    "operator": "host",
    "runtime": "runtime API calls",
    "data": "data loading",
    "annotation": "annotations, idle",
    "wait": "waiting and latency",
}
"""Meaning of each colour, in the order of the legend."""


def color_of(kind: str) -> str:
    """Return the colour of a kind of time.

    Examples
    --------
    >>> color_of("host_gap"), color_of("unexplained")
    ('operator', 'wait')
    """
    return _COLORS.get(kind.replace("_", " "), _OTHER)
