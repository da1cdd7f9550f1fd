"""Rows of `longpole tunableop`, as an answer."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, get_args

from longpole.cli.answer import exit_codes
from longpole.cli.answer.inputs import csv_rows, json_rows
from longpole.report.blocks import Column, Headline, Notes, Table
from longpole.report.document import Abstention, Document
from longpole.words.data import names_of, plain
from longpole.words.json_schema import types_of
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import polars as pl

    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block

MOST_ROWS: Final = 20
MOST_SHOWN: Final = 1_000
_COUNTS: Final = {"calls", "conflicts", "dropped", "flops", "gemms"}
_NAMES: Final = {"file", "operator", "parameters", "results", "untuned"}
"""Columns of strings that may be shortened."""


def rows_answer(
    name: str,
    path: str | None,
    headline: str,
    data: Any,
    row: type,
    *shown: str,
    notes: Sequence[str] = (),
    exit_code: int = exit_codes.OK,
    most: int | None = None,
) -> Answer:
    """Answer with rows of a declared type; text output has `most` rows and the columns `shown`."""
    import polars as pl

    types = types_of(row)
    columns = shown or tuple(types)
    fields = _fields(data)
    given = fields["rows"]
    if isinstance(given, pl.DataFrame):
        head = given if most is None else given.head(most)
        cells: Sequence[Sequence[Any]] = head.select(columns).rows()
        n_rows, rows = given.height, frame_rows(fields, lambda: [given.select(tuple(types))])
    else:
        records = plain(given)
        cells = [[each[column] for column in columns] for each in records[:most]]
        n_rows, rows = len(records), {"data": data, "records": lambda: records}
    more = [f"{count(n_rows - len(cells), 'more row')}"] if len(cells) < n_rows else []

    def blocks() -> list[Block]:
        titles = [column_of(name, types[name]) for name in columns]
        table: list[Block] = [Table(titles, cells)] if cells else []
        rest: list[Block] = [Notes([*more, *notes])] if more or notes else []
        return [Headline(headline), *table, *rest]

    document = Document(
        schema=f"longpole.tunableop.{name}/1",
        input={"path": path} if path else {},
        abstains_because=[Abstention("no_rows")] if exit_code == exit_codes.INCONCLUSIVE else [],
        blocks=blocks,
        columns=tuple(types),
        **rows,
    )
    return document, exit_code


def _fields(data: Any) -> Mapping[str, Any]:
    """Return the declared fields of data, unchanged."""
    if isinstance(data, Mapping):
        return data
    cls: Any = type(data)
    return {name: getattr(data, name) for name in names_of(cls)}


def frame_rows(
    data: Mapping[str, Any], frames: Callable[[], Iterable[pl.DataFrame]]
) -> dict[str, Any]:
    """Return the data of a document, and its rows for each format, made as they are written."""
    return {
        "data": {**data, "rows": []},
        "records": lambda: (row for frame in frames() for row in frame.iter_rows(named=True)),
        "json_rows": lambda: chain.from_iterable(map(json_rows, frames())),
        "csv_rows": lambda: chain.from_iterable(map(csv_rows, frames())),
    }


def column_of(name: str, declared: Any) -> Column:
    """Return how to display a column, by its name and type."""
    types = {declared, *get_args(declared)}
    if "_ns" in name:
        # Durations are displayed with their own unit.
        return Column(name.replace("_ns", ""), "duration")
    if name.startswith("share"):
        return Column(name, "share")
    if types & {int, float}:
        return Column(name, "count" if name in _COUNTS else "number")
    if bool in types:
        return Column(name, "flag")
    return Column(name, "name" if name in _NAMES else "text")
