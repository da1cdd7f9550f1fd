"""The answer for one input, independent of the output format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from longpole.report.blocks import Column, Table
from longpole.words.data import Row, plain
from longpole.words.wording import short_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import polars as pl

    from longpole.report.blocks import Block, Cell, Type
    from longpole.report.sections import Section

FORMATS: Final = ("text", "json", "jsonl", "csv", "md", "html")
DATA_FORMATS: Final = ("json", "jsonl")
"""The formats that contain the warnings."""

Record = dict[str, "Cell"]
Status = Literal["ok", "partial", "abstained", "error"]


AbstentionCode = Literal[
    "after_last_event",
    "before_first_event",
    "change_without_effect",
    "damaged",
    "empty_window",
    "graph_gap",
    "host_alone",
    "host_waits",
    "impossible_times",
    "job_failed",
    "missing_ranks",
    "no_calls",
    "no_result",
    "no_rows",
    "no_work",
    "noise",
    "polling",
    "profiler_cost",
    "remaining",
    "replay_differs",
    "sync_return",
    "unexplained",
    "unlinked",
    "unrecorded",
    "unrecorded_waits",
    "unrelated",
]
"""Code of the reason why there is no answer; `docs/exit-codes.md` explains each."""


@dataclass(frozen=True, slots=True)
class Abstention:
    """The reason why a question is not answered, and the window or input that it is about."""

    code: AbstentionCode
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning about an answer."""

    code: str
    count: int
    message: str
    effect: str
    hint: str | None = None


class Tool(Row):
    """The program that wrote an answer."""

    name: str
    version: str


class Envelope(Row):
    """The envelope of every answer."""

    schema: str
    tool: Tool
    inputs: list[Mapping[str, Any]]
    scope: Mapping[str, Any] | None
    """The part of the input that the answer is about."""
    status: Status
    abstains_because: list[Abstention]
    """Reasons why the question is not answered; empty if it is."""
    warnings: list[Warned]
    data: Mapping[str, Any] | None
    """The answer, described by the schema of the command."""
    truncated: Mapping[str, Any] | None
    """The lists that were shortened, and their full lengths."""
    error: Mapping[str, Any] | None
    """The error, if there is no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The answer for one input, in all forms that the output formats need.

    `blocks` and `records` are only computed for the formats that need them.
    """

    schema: str
    input: Mapping[str, Any]
    status: Status = "ok"
    scope: Mapping[str, Any] | None = None
    abstains_because: Sequence[Abstention] = ()
    warnings: Sequence[Warned] = ()
    forms_with_warnings: Sequence[str] = FORMATS
    """The formats that contain the warnings; with all others, warnings are printed to stderr."""
    is_one_screen: bool = False
    """Whether its last line says where to see more, so that no other one does."""
    data: Any = None
    """The answer in a form that `longpole.words.data.plain` accepts, or a function that makes it,
    if it is large and only JSON needs it."""
    truncated: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    blocks: Callable[[], Sequence[Block]] = field(default=tuple)
    """The answer for people."""
    sections: Callable[[], Sequence[Section]] | None = None
    """The answer as sections of a page; by default its blocks."""
    facts: Callable[[], Sequence[str]] | None = None
    """What a page says first about the input; by default its path."""
    records: Callable[[], Iterable[Record]] = field(default=tuple)
    """The answer as one table, for spreadsheets."""
    columns: Sequence[str] = ()
    """The columns of the records, if there may be no records."""
    json_rows: Callable[[], Iterable[str]] | None = None
    """The elements of `data["rows"]` as JSON, one line each, if there may be very many."""
    csv_rows: Callable[[], Iterable[str]] | None = None
    """The records as CSV, several lines at a time, if there may be very many."""

    def envelope(self) -> dict[str, Any]:
        """Return the answer as data, with keys in a fixed order."""
        from importlib.metadata import version

        envelope = Envelope(
            schema=self.schema,
            tool={"name": "longpole", "version": version("longpole")},
            inputs=[self.input] if self.input else [],
            scope=self.scope,
            status=self.status,
            abstains_because=list(self.abstains_because),
            warnings=list(self.warnings),
            data=self.data() if callable(self.data) else self.data,
            truncated=self.truncated,
            error=self.error,
        )
        found: dict[str, Any] = plain(envelope)
        return found


# Converts frames to blocks: each column gets a type, by its name.


_POINTS_IN_TIME: Final = ("start_ns", "end_ns", "time_ns")
_NAMES: Final = frozenset(
    ("annotation", "function", "kernel", "kernels", "name", "operator", "python")
)

_COUNTS: Final = frozenset(("bytes", "calls", "count"))


def flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Convert lists to strings, for cells that hold one value."""
    import polars as pl

    lists = pl.col(name for name, dtype in frame.schema.items() if dtype == pl.List(pl.String))
    return frame.with_columns(lists.list.join(" -> "))


def table_of(frame: pl.DataFrame, needed: str | None = None, *, most: int | None = None) -> Table:
    """Return the first rows of a frame as a table for people, without its empty columns.

    The column `needed` is shown at any width.
    """
    types = {name: _type(name, dtype) for name, dtype in frame.schema.items()}
    titles = {name: _title(name, types) for name in types}
    shown = [
        name
        for place, name in enumerate(types)
        if not place
        or frame[name].null_count() < max(frame.height, 1)
        or needed in (name, titles[name])
    ]
    columns = [Column(titles[name], types[name], needed in (name, titles[name])) for name in shown]
    rows = frame.select(shown) if most is None else frame.select(shown).head(most)
    return Table(columns, flat(_with_labels(rows, types)).rows())


def _with_labels(frame: pl.DataFrame, types: Mapping[str, Type]) -> pl.DataFrame:
    """Shorten each name in lists of names, which would else be shortened as one name."""
    import polars as pl

    lists = [
        name
        for name, dtype in frame.schema.items()
        if dtype == pl.List(pl.String) and types[name] == "name"
    ]
    labels = [
        pl.Series(
            name,
            [[*map(short_name, names or ())] for names in frame[name].to_list()],
            frame[name].dtype,
        )
        for name in lists
    ]
    return frame.with_columns(labels)


def _title(name: str, types: Mapping[str, Type]) -> str:
    """Remove the unit from the title of a duration; `time` follows if a name has that title."""
    if types[name] != "duration":
        return name
    stem = name.removesuffix("_ns")
    return f"{stem} time" if stem in types or f"{stem}_name" in types else stem


def _type(name: str, dtype: pl.DataType) -> Type:
    if name == "event" or name.endswith("_event"):
        return "event"
    if name.endswith("_ns") and not name.endswith(_POINTS_IN_TIME):
        return "duration"
    if not dtype.is_numeric() and (name in _NAMES or name.endswith("_name")):
        return "name"
    if name.endswith("share") or name.startswith(("share_of_", "of_")):
        return "share"
    if dtype.is_numeric():
        is_count = name in _COUNTS or name.startswith("n_") or name.endswith("_bytes")
        return "count" if is_count and dtype.is_integer() else "number"
    return "flag" if str(dtype) == "Boolean" else "text"
