"""`longpole bench results`: what came of each job."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.bench.records.record import Outcome
from longpole.cli.options import Options, shared_options
from longpole.cli.output import Document, Warned, emit, markdown_table
from longpole.cli.terminal import Column, Terminal
from longpole.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.bench import Record
    from longpole.cli.output import Record as Row

__all__ = ["results"]

_SCHEMA: Final = "longpole.bench.results/1"
_COLUMNS: Final = (
    Column("job", "left", has_names=True),
    Column("outcome", "left"),
    Column("attempt"),
    Column("took"),
    Column("best", "left"),
    Column("time"),
    Column("said", "left"),
)
_SAID_CHARACTERS: Final = 60


@click.command()
@click.argument("path", metavar="RESULTS")
@click.option(
    "--outcome",
    type=click.Choice([outcome.value for outcome in Outcome]),
    help="Only records of this outcome.",
)
@click.option("--all-attempts", is_flag=True, help="Not only the last attempt at each job.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="Show so many records; the others are counted.",
)
@shared_options
def results(
    *, path: str, outcome: str | None, all_attempts: bool, limit: int, options: Options
) -> int:
    """Show what came of each job. JSON holds all that was recorded.

    \b
    Examples:
      longpole bench results jobs.results.jsonl --outcome timeout
      longpole bench results jobs.results.jsonl --json
    """
    from longpole.bench import ResultsFile
    from longpole.cli.bench_records import checked, damage_warnings

    file = ResultsFile(path)
    wanted = checked(file, file.records() if all_attempts else file.final_records())
    kept: list[Record] = []
    n_found = 0
    for record in wanted:
        if outcome in {None, record.outcome}:
            n_found += 1
            if n_found <= limit:
                kept.append(record)
    warnings = [*damage_warnings(file), *_left_out(n_found - len(kept))]
    document = Document(
        schema=_SCHEMA,
        input={"path": path, "n_records": file.n_records},
        warnings=warnings,
        data={"records": [record.to_dict() for record in kept]},
        truncated={"records": {"shown": len(kept), "total": n_found}} if n_found > limit else None,
        text=lambda terminal: _text(kept, warnings, terminal),
        markdown=lambda: _markdown(kept),
        records=lambda: [_row(record) for record in kept],
    )
    return emit([document], options.form, Terminal.of(sys.stdout, options.color))


def _left_out(n_records: int) -> list[Warned]:
    if not n_records:
        return []
    message = f"{count(n_records, 'further record')} beyond the limit"
    return [Warned("limit", n_records, message, "not shown; see --limit")]


def _text(records: Sequence[Record], warnings: Sequence[Warned], terminal: Terminal) -> str:
    cells = [_cells(record) for record in records]
    lines = terminal.table(_COLUMNS, cells, indent="") if cells else ["no such record"]
    lines += [warned.message for warned in warnings]
    return "\n".join(lines) + "\n"


def _markdown(records: Sequence[Record]) -> str:
    titles = [column.title for column in _COLUMNS]
    sides = [column.align for column in _COLUMNS]
    return "\n".join(markdown_table(titles, [_cells(each) for each in records], sides)) + "\n"


def _cells(record: Record) -> list[str]:
    said = record.message
    return [
        record.id,
        record.outcome,
        str(record.attempt),
        "-" if record.seconds is None else duration(round(record.seconds * 1e9)),
        record.best.name if record.best else "-",
        duration(round(record.best.time_ns)) if record.best else "-",
        said if len(said) <= _SAID_CHARACTERS else said[: _SAID_CHARACTERS - 1] + "…",
    ]


def _row(record: Record) -> Row:
    row: dict[str, Any] = {
        "id": record.id,
        "key": record.key,
        "outcome": record.outcome,
        "attempt": record.attempt,
        "device": record.device,
        "exit_code": record.exit_code,
        "signal": record.signal,
        "duration_ns": None if record.seconds is None else round(record.seconds * 1e9),
        "best": record.best.name if record.best else None,
        "time_ns": record.best.time_ns if record.best else None,
        "message": record.message,
    }
    return row
