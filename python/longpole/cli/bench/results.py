"""`longpole bench results`: show the outcome of each job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from longpole.bench.records.record import Outcome, Record
from longpole.cli.answer import exit_codes
from longpole.cli.ask.options import Options, answer_options, answers, top_option
from longpole.data import Row
from longpole.report.blocks import Column, Notes, Sentence, Table
from longpole.report.document import Document, Warned
from longpole.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.report.blocks import Block, Cell

__all__ = ["results"]

_SCHEMA: Final = "longpole.bench.results/1"
_COLUMNS: Final = (
    Column("job", "name"),
    Column("outcome"),
    Column("attempt", "number"),
    Column("took", "duration"),
    Column("best"),
    Column("time", "duration"),
    Column("message"),
)
_SAID_CHARACTERS: Final = 60


class Results(Row):
    """The records of a run."""

    records: list[Record]


@click.command()
@answers("longpole.cli.bench.results:Results")
@click.argument("path", metavar="RESULTS")
@click.option(
    "--outcome",
    type=click.Choice([outcome.value for outcome in Outcome]),
    help="Show only records with this outcome.",
)
@click.option(
    "--all-attempts", is_flag=True, help="Show all attempts at each job, not only the last."
)
@top_option(10_000, "records")
@answer_options
def results(
    *, path: str, outcome: str | None, all_attempts: bool, top: int, options: Options
) -> int:
    """Show the outcome of each job.

    JSON has everything that was recorded.

    \b
    Examples:
      longpole bench results jobs.results.jsonl --outcome timeout
      longpole bench results jobs.results.jsonl --json
    """
    from longpole.bench import ResultsFile
    from longpole.cli.ask.records import checked, damage_warnings

    file = ResultsFile(path)
    wanted = checked(file, file.records() if all_attempts else file.final_records())
    kept: list[Record] = []
    n_found = 0
    for record in wanted:
        if outcome in {None, record.outcome}:
            n_found += 1
            if n_found <= top:
                kept.append(record)
    warnings = [*damage_warnings(file), *_left_out(n_found - len(kept))]
    document = Document(
        schema=_SCHEMA,
        input={"path": path, "n_records": file.n_records},
        warnings=warnings,
        data=Results(records=kept),
        truncated={"records": {"shown": len(kept), "total": n_found}} if n_found > top else None,
        blocks=lambda: _blocks(kept, warnings),
        records=lambda: [_row(record) for record in kept],
    )
    return options.emit((document, exit_codes.OK))


def _left_out(n_records: int) -> list[Warned]:
    if not n_records:
        return []
    message = f"{count(n_records, 'further record')} beyond the limit"
    return [Warned("limit", n_records, message, "not shown; see --top")]


def _blocks(records: Sequence[Record], warnings: Sequence[Warned]) -> list[Block]:
    rows = [_cells(record) for record in records]
    found: Block = Table(_COLUMNS, rows) if rows else Sentence("no such record")
    notes = [warned.message for warned in warnings]
    return [found, Notes(notes)] if notes else [found]


def _cells(record: Record) -> tuple[Cell, ...]:
    said = record.message
    return (
        record.id,
        record.outcome,
        record.attempt,
        None if record.seconds is None else record.seconds * 1e9,
        record.best.name if record.best else None,
        record.best.time_ns if record.best else None,
        said if len(said) <= _SAID_CHARACTERS else said[: _SAID_CHARACTERS - 1] + "…",
    )


def _row(record: Record) -> dict[str, Any]:
    return {
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
