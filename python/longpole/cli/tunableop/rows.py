"""Rows of `longpole tunableop`, as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

from longpole.cli.answer import exit_codes
from longpole.data import plain
from longpole.json_schema import types_of
from longpole.report.blocks import Column, Headline, Notes, Table
from longpole.report.document import Abstention, Document
from longpole.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block

__all__ = ["MOST_ROWS", "column_of", "rows_answer"]

MOST_ROWS: Final = 20
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
    types = types_of(row)
    rows = plain(data)["rows"]
    columns = shown or tuple(types)
    cells = [[each[column] for column in columns] for each in rows[:most]]
    more = [f"{count(len(rows) - len(cells), 'more row')}"] if len(cells) < len(rows) else []

    def blocks() -> list[Block]:
        titles = [column_of(name, types[name]) for name in columns]
        table: list[Block] = [Table(titles, cells)] if cells else []
        rest: list[Block] = [Notes([*more, *notes])] if more or notes else []
        return [Headline(headline), *table, *rest]

    document = Document(
        schema=f"longpole.tunableop.{name}/1",
        input={"path": path} if path else {},
        abstains_because=[Abstention("no_rows")] if exit_code == exit_codes.INCONCLUSIVE else [],
        data=data,
        blocks=blocks,
        records=lambda: rows,
        columns=tuple(types),
    )
    return document, exit_code


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
