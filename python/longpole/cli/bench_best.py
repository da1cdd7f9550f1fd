"""`longpole bench best`: the fastest result of each key."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli import exit_codes
from longpole.cli.options import Options, shared_options
from longpole.cli.output import Document, Warned, emit, markdown_table
from longpole.cli.terminal import Column, Terminal
from longpole.wording import count, duration, escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.bench import Record

__all__ = ["best"]

_SCHEMA: Final = "longpole.bench.best/1"
_COLUMNS: Final = (
    Column("key", "left", has_names=True),
    Column("best", "left", has_names=True),
    Column("time"),
    Column("workspace"),
    Column("job", "left"),
    Column("device", "left"),
)


@click.command()
@click.argument("path", metavar="RESULTS")
@click.option("--by", metavar="TAG", help="Choose for each value of a tag, not for each key.")
@shared_options
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
    from longpole.cli.bench_records import checked, damage_warnings

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
        exit_code=exit_codes.OK if rows else exit_codes.INCONCLUSIVE,
        text=lambda terminal: _text(rows, warnings, terminal),
        markdown=lambda: _markdown(rows),
        records=lambda: rows,
    )
    return emit([document], options.form, Terminal.of(sys.stdout, options.color))


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


def _text(rows: Sequence[dict[str, Any]], warnings: Sequence[Warned], terminal: Terminal) -> str:
    cells = [_cells(row) for row in rows]
    none = ["no run gave a result that can be chosen"]
    lines = terminal.table(_COLUMNS, cells, indent="") if cells else none
    lines += [escape(warned.message) for warned in warnings]
    return "\n".join(lines) + "\n"


def _markdown(rows: Sequence[dict[str, Any]]) -> str:
    titles = [column.title for column in _COLUMNS]
    sides = [column.align for column in _COLUMNS]
    return "\n".join(markdown_table(titles, [_cells(row) for row in rows], sides)) + "\n"


def _cells(row: dict[str, Any]) -> list[str]:
    workspace = row["workspace_bytes"]
    return [
        row["key"],
        row["name"] + (" (unstable)" if row["unstable"] else ""),
        duration(round(row["time_ns"])),
        "-" if workspace is None else f"{workspace:,} B",
        row["id"],
        row["device"] or "-",
    ]
