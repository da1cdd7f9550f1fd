"""`longpole bench best`: the fastest result of each key."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from longpole.cli import exit_codes
from longpole.cli.failures import answer_failures
from longpole.cli.listing import FORMATS, envelope, print_rows, printable, span, whole

if TYPE_CHECKING:
    from longpole.bench import Record
    from longpole.cli.listing import Format, Row

__all__ = ["best"]

SCHEMA: Final = "longpole.bench.best/1"


@click.command()
@click.argument("path", metavar="RESULTS")
@click.option("--by", metavar="TAG", help="Choose for each value of a tag, not for each key.")
@click.option(
    "--format",
    "write_as",
    type=click.Choice(FORMATS),
    default="text",
    help="How to print them.  [default: text]",
)
@answer_failures
def best(path: str, *, by: str | None, write_as: Format) -> int:
    r"""Choose the fastest result of each key.

    Only runs that ended well are looked at; zero, negative, infinite times and nan
    never win. Exit code 4 means that there is nothing to choose from.

    \b
    Examples:
      longpole bench best jobs.results.jsonl
      longpole bench best jobs.results.jsonl --by shape --format json
    """
    from longpole.bench import best_records, read_results

    def group(record: Record) -> str:
        return record.key if by is None else str(record.tags.get(by, "-"))

    chosen = best_records(read_results(path).records, group)
    rows = [_row(name, record) for name, record in chosen.items()]
    columns = {
        "key": printable,
        "name": printable,
        "time_ns": span,
        "workspace_bytes": printable,
        "id": printable,
        "device": printable,
    }
    status = "ok" if rows else "inconclusive"
    print_rows(rows, columns, write_as, around=envelope(SCHEMA, [path], status=status))
    if rows:
        return exit_codes.OK
    sys.stderr.write(f"warning: no run in {path} gave a result that can be chosen\n")
    return exit_codes.INCONCLUSIVE


def _row(key: str, record: Record) -> Row:
    chosen = record.best
    return {
        "key": key,
        "name": chosen.name if chosen else None,
        "time_ns": whole(chosen.time_ns) if chosen else None,
        "workspace_bytes": chosen.workspace_bytes if chosen else None,
        "id": record.id,
        "device": record.device,
        "tags": dict(record.tags),
        "unstable": record.unstable,
    }
