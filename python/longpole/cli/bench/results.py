"""`longpole bench results`: show the outcome of each job."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.bench.records.record import Outcome
from longpole.cli.answer import exit_codes
from longpole.cli.answer.emit import emit
from longpole.cli.ask.options import Options, shared_options
from longpole.report.blocks import Column, Notes, Sentence, Table
from longpole.report.document import Document, Warned
from longpole.report.terminal import Terminal
from longpole.wording import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.bench import Record
    from longpole.report.blocks import Block, Cell
    from longpole.report.document import Record as Row

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


@click.command()
@click.argument("path", metavar="RESULTS")
@click.option(
    "--outcome",
    type=click.Choice([outcome.value for outcome in Outcome]),
    help="Only records of this outcome.",
)
@click.option("--all-attempts", is_flag=True, help="Not only the last attempt at each job.")
@shared_options
def results(*, path: str, outcome: str | None, all_attempts: bool, options: Options) -> int:
    """Show what came of each job. JSON holds all that was recorded.

    \b
    Examples:
      longpole bench results jobs.results.jsonl --outcome timeout
      longpole bench results jobs.results.jsonl --json
    """
    from longpole.bench import final_records
    from longpole.cli.ask.records import records_of_runs

    stored = records_of_runs(path)
    kept = stored.records if all_attempts else final_records(stored.records).values()
    records = [record for record in kept if outcome in {None, record.outcome}]
    document = Document(
        schema=_SCHEMA,
        input={"path": path, "n_records": len(stored.records)},
        warnings=_warnings(stored.skipped),
        data={"records": [record.to_dict() for record in records]},
        blocks=lambda: _blocks(records, stored.skipped),
        records=lambda: [_row(record) for record in records],
    )
    return emit([(document, exit_codes.OK)], options.form, Terminal.of(sys.stdout, options.color))


def _warnings(skipped: int) -> list[Warned]:
    if not skipped:
        return []
    effect = "what they said is not shown"
    return [Warned("no_record", skipped, f"{count(skipped, 'row')} could not be read", effect)]


def _blocks(records: Sequence[Record], skipped: int) -> list[Block]:
    rows = [_cells(record) for record in records]
    found: Block = Table(_COLUMNS, rows) if rows else Sentence("no such record")
    notes = [warned.message for warned in _warnings(skipped)]
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
