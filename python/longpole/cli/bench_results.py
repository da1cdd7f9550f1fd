"""`longpole bench results`: what came of each job."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli import exit_codes
from longpole.cli.failures import answer_failures
from longpole.cli.listing import FORMATS, envelope, print_rows, printable, span, whole

if TYPE_CHECKING:
    from longpole.bench import Record
    from longpole.cli.listing import Format, Row

__all__ = ["results"]

SCHEMA: Final = "longpole.bench.results/1"


@click.command()
@click.argument("path", metavar="RESULTS")
@click.option("--outcome", help="Only records of this outcome, as `timeout`.")
@click.option("--all-attempts", is_flag=True, help="Not only the last attempt of each job.")
@click.option(
    "--format",
    "write_as",
    type=click.Choice(FORMATS),
    default="text",
    help="How to print them.  [default: text]",
)
@answer_failures
def results(path: str, *, outcome: str | None, all_attempts: bool, write_as: Format) -> int:
    r"""Show what came of each job.

    The json, jsonl and csv forms hold all that was recorded.

    \b
    Examples:
      longpole bench results jobs.results.jsonl --outcome timeout
      longpole bench results jobs.results.jsonl --format csv
    """
    from longpole.bench import final_records, read_results

    stored = read_results(path)
    records = list(stored.records if all_attempts else final_records(stored.records).values())
    rows = [_row(record) for record in records if outcome in {None, record.outcome}]
    warnings = [f"{stored.skipped} rows of {path} are no records"] if stored.skipped else []
    columns = {
        "id": printable,
        "outcome": printable,
        "attempt": printable,
        "seconds": _seconds,
        "best_name": printable,
        "best_time_ns": span,
        "message": printable,
    }
    print_rows(rows, columns, write_as, around=envelope(SCHEMA, [path], warnings=warnings))
    for warning in warnings:
        sys.stderr.write(f"warning: {warning}\n")
    return exit_codes.OK


def _row(record: Record) -> Row:
    best = record.best
    return {
        **record.to_dict(),
        "best_name": best.name if best else None,
        "best_time_ns": whole(best.time_ns) if best else None,
    }


def _seconds(value: Any) -> str:
    return "-" if value is None else f"{value:.3f}"
