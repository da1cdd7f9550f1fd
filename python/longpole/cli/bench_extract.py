"""`longpole bench extract`: what was measured, out of the output of profilers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli import exit_codes
from longpole.cli.options import is_debugging
from longpole.cli.output import FORMATS, Document, Record, Warned, emit, markdown_table
from longpole.cli.problems import Problem
from longpole.cli.terminal import Column, Terminal
from longpole.cli.traces import title
from longpole.wording import count as count_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.bench import Extraction, MeasuredRow, OmittedRows

__all__ = ["extract"]

_SCHEMA: Final = "longpole.bench.extract/1"
_COLUMNS: Final = (
    Column("operation", "left", has_names=True),
    Column("time_ns"),
    Column("workspace_bytes"),
    Column("data_bytes"),
    Column("status", "left"),
    Column("format", "left"),
)


@click.command()
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@click.option(
    "--format",
    "formats",
    multiple=True,
    metavar="auto|NAME|regex=PATTERN|FORM",
    help="What to look for, by default every format; or, as with all verbs, how to write "
    f"the answer: {', '.join(FORMATS)}. May be given several times.",
)
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.option("--died", is_flag=True, help="The process was killed: do not trust a cut last line.")
@click.option(
    "--max-rows",
    type=click.IntRange(min=1, max=10_000_000),
    default=10_000,
    show_default=True,
    help="Keep so many rows of a log; the others are counted and summarised by operation.",
)
def extract(
    *, logs: Sequence[str], formats: Sequence[str], as_json: bool, died: bool, max_rows: int
) -> int:
    """Print what was measured, out of the output of profilers.

    NAME is one of aitemplate, cutlass, cutlass-csv, hipblaslt, rocblas, ncu, nccl. A
    PATTERN has groups named time_ns, time_us, time_ms or time_s, operation, workspace,
    bytes; all its other groups are fields. LOG may be - for stdin. Exit code 4 means
    that a log holds nothing that may be compared.

    \b
    Examples:
      longpole bench extract profiler.log
      longpole bench extract run.log --format 'regex=(?P<op>[a-z]+): (?P<time_us>[0-9.]+) us'
    """
    forms = ["json" if as_json else "text", *(name for name in formats if name in FORMATS)]
    wanted = [name for name in formats if name not in FORMATS] or ["auto"]
    documents = (_answer(log, wanted, died=died, form=forms[-1], max_rows=max_rows) for log in logs)
    return emit(documents, forms[-1], Terminal.of(sys.stdout))


def _answer(log: str, wanted: Sequence[str], *, died: bool, form: str, max_rows: int) -> Document:
    """Look into one log; one that cannot be read does not keep the others from it."""
    from longpole import bench

    source = sys.stdin.buffer if log == "-" else log
    try:
        found = bench.extract(source, format=wanted, died=died, max_rows=max_rows)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--format'") from error
    except OSError as error:
        if is_debugging():
            raise
        return Document.of_problem(_SCHEMA, Problem.of(error).at(log))
    document = _document(log, found)
    if form not in ("json", "jsonl"):
        for warned in document.warnings:
            click.echo(f"warning: {title(log)}: {warned.message}; {warned.effect}", err=True)
    return document


def _document(log: str, found: Extraction) -> Document:
    has_result = found.best() is not None
    return Document(
        schema=_SCHEMA,
        input={"path": log, "bytes": found.n_bytes},
        status=("partial" if found.rejected_counts or found.omitted else "ok")
        if has_result
        else "abstained",
        exit_code=exit_codes.OK if has_result else exit_codes.INCONCLUSIVE,
        warnings=_warnings(found),
        data={
            "records": list(_records(found)),
            "omitted": [_summary(rows) for rows in found.omitted],
            "rejected": found.rejected.to_dicts(),
        },
        truncated=_truncated(found),
        text=lambda terminal: _text(log, found, terminal),
        markdown=lambda: _markdown(found),
        records=lambda: [{"log": log, **_flat(row)} for row in found.measurements],
    )


def _warnings(found: Extraction) -> list[Warned]:
    rejected = found.rejected
    warnings = []
    for reason, count in found.rejected_counts.items():
        first = rejected.filter(rejected["reason"] == reason).head(1)
        places = "".join(
            f", the first at byte {offset}: {title(excerpt)}"
            for offset, excerpt in first.select("offset", "excerpt").iter_rows()
        )
        message = f"{count_of(count, 'row')} could not be read ({reason}){places}"
        warnings.append(Warned(reason, count, message, "not among the records"))
    if n_omitted := sum(rows.n_rows for rows in found.omitted):
        kept = len(found.measurements)
        message = f"{count_of(n_omitted, 'row')} beyond the first {kept:,} summarised by operation"
        warnings.append(Warned("max_rows", n_omitted, message, "not shown; see --max-rows"))
    return warnings


def _summary(rows: OmittedRows) -> Record:
    fastest = rows.fastest
    return {
        "format": rows.format,
        "operation": rows.operation,
        "several_operations": rows.is_rest,
        "count": rows.n_rows,
        "min_ns": None if fastest is None else _whole(fastest.time_ns),
        "last_ns": _whole(rows.last_ns),
    }


def _records(found: Extraction) -> Iterator[dict[str, Any]]:
    """Give every record with its fields."""
    fields: dict[int, dict[str, str]] = {}
    for record, name, value in found.fields.iter_rows():
        fields.setdefault(record, {}).setdefault(name, value)
    for number, row in enumerate(found.records.iter_rows(named=True)):
        yield row | {"time_ns": _whole(row["time_ns"]), "fields": fields.get(number, {})}


def _truncated(found: Extraction) -> dict[str, Any] | None:
    rejected, n_kept = sum(found.rejected_counts.values()), len(found.measurements)
    totals = {
        "records": (n_kept, n_kept + sum(rows.n_rows for rows in found.omitted)),
        "rejected": (found.rejected.height, rejected),
    }
    cut = {
        name: {"shown": shown, "total": total}
        for name, (shown, total) in totals.items()
        if shown < total
    }
    return cut or None


def _text(log: str, found: Extraction, terminal: Terminal) -> str:
    if not found.measurements:
        return f"{title(log)}: no row of a format that was looked for\n"
    lines = terminal.table(_COLUMNS, [_cells(row) for row in found.measurements])
    return "\n".join([title(log), *lines, ""])


def _markdown(found: Extraction) -> str:
    titles = [column.title for column in _COLUMNS]
    sides = [column.align for column in _COLUMNS]
    rows = [_cells(row) for row in found.measurements]
    return "\n".join([*markdown_table(titles, rows, sides), ""])


def _cells(row: MeasuredRow) -> list[str]:
    values = _flat(row)
    cells = (values[column.title] for column in _COLUMNS)
    return ["-" if value is None else str(value) for value in cells]


def _flat(row: MeasuredRow) -> Record:
    return row._asdict() | {"time_ns": _whole(row.time_ns)}


def _whole(value: float | None) -> float | None:
    """Write whole nanoseconds without a point."""
    return int(value) if value is not None and value.is_integer() else value
