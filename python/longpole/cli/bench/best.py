"""`longpole bench best`: choose the fastest result of each key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli.answer import exit_codes
from longpole.cli.ask.options import Options, answer_options
from longpole.report.blocks import Column, Notes, Sentence, Table
from longpole.report.document import Document, Warned
from longpole.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.bench import Record
    from longpole.report.blocks import Block, Cell

__all__ = ["best"]

_SCHEMA: Final = "longpole.bench.best/1"
_COLUMNS: Final = (
    Column("key", "name"),
    Column("best", "name"),
    Column("time", "duration"),
    Column("workspace", "number"),
    Column("job"),
    Column("device"),
)
_NOTHING: Final = "no run gave a result that can be chosen"


@click.command()
@click.argument("path", metavar="RESULTS")
@click.option("--by", metavar="TAG", help="Choose for each value of a tag, not for each key.")
@answer_options
def best(*, path: str, by: str | None, options: Options) -> int:
    """Choose the fastest result of each key.

    Only runs that ended well are looked at; zero, negative and infinite times and nan
    never win. With --by, jobs without that tag are left out and counted. Exits with 4
    where there is nothing to choose from.

    \b
    Examples:
      longpole bench best jobs.results.jsonl
      longpole bench best jobs.results.jsonl --by shape --json
    """
    from longpole.bench import ResultsFile
    from longpole.bench.records.choice import best_of_final
    from longpole.cli.ask.records import checked, damage_warnings

    n_left_out = 0

    def in_a_group(records: Iterator[Record]) -> Iterator[Record]:
        nonlocal n_left_out
        for record in records:
            if by is None or by in record.tags:
                yield record
            else:
                n_left_out += 1

    def group(record: Record) -> str:
        return record.key if by is None else str(record.tags[by])

    file = ResultsFile(path)
    chosen = best_of_final(in_a_group(checked(file, file.final_records())), group)
    warnings = [*_warnings(by, n_left_out), *damage_warnings(file)]
    rows = [_row(name, record) for name, record in chosen.items()]
    document = Document(
        schema=_SCHEMA,
        input={"path": path},
        status="ok" if rows else "abstained",
        scope={"by": by},
        warnings=warnings,
        data={"best": rows},
        blocks=lambda: _blocks(rows, warnings),
        records=lambda: rows,
    )
    exit_code = exit_codes.OK if rows else exit_codes.INCONCLUSIVE
    return options.emit((document, exit_code))


def _warnings(by: str | None, n_left_out: int) -> list[Warned]:
    if not n_left_out:
        return []
    message = f"{count(n_left_out, 'job')} without the tag {by!r} left out"
    return [Warned("no_tag", n_left_out, message, "one of them may be the fastest")]


def _row(key: str, record: Record) -> dict[str, Any]:
    chosen = record.best
    return {
        "key": key,
        "name": chosen.name if chosen else None,
        "time_ns": chosen.time_ns if chosen else None,
        "workspace_bytes": chosen.workspace_bytes if chosen else None,
        "id": record.id,
        "device": record.device,
        "unstable": record.unstable,
    }


def _blocks(rows: Sequence[dict[str, Any]], warnings: Sequence[Warned]) -> list[Block]:
    best: Block = Table(_COLUMNS, [_cells(row) for row in rows]) if rows else Sentence(_NOTHING)
    notes = [warned.message for warned in warnings]
    return [best, Notes(notes)] if notes else [best]


def _cells(row: dict[str, Any]) -> tuple[Cell, ...]:
    workspace = row["workspace_bytes"]
    return (
        row["key"],
        row["name"] + (" (unstable)" if row["unstable"] else ""),
        row["time_ns"],
        None if workspace is None else f"{workspace:,} B",
        row["id"],
        row["device"],
    )
