"""`longpole bench extract`: extract results from the output of profilers."""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from longpole.bench.extraction import PATTERN_FORMAT, MeasuredRow, without_point
from longpole.cli.answer import exit_codes
from longpole.cli.answer.emit import failed
from longpole.cli.answer.inputs import csv_rows, name_of
from longpole.cli.answer.problems import Problem
from longpole.cli.ask.options import Options, answer_options, answers, top_option
from longpole.files.opening import binary_kind, is_pipe, open_file
from longpole.report.blocks import Column, Headline, Sentence, Table
from longpole.report.document import DATA_FORMATS, Abstention, Document, Warned
from longpole.words.data import Row
from longpole.words.wording import count as count_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from longpole.bench import Extraction, OmittedRows
    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block
    from longpole.report.document import Record

_SCHEMA: Final = "longpole.bench.extract/1"
_WRITTEN: Final = ("log", *MeasuredRow._fields)
"""The columns of the CSV."""
_HEAD_BYTES: Final = 1 << 16
_INDEX: Final = " record"
"""Column of row numbers while columns are joined; a regex group cannot have this name."""
_COLUMNS: Final = (
    Column("operation", "name"),
    Column("time_ns", "number"),
    Column("workspace_bytes", "number"),
    Column("data_bytes", "number"),
    Column("status"),
    Column("format"),
)


class ExtractedRow(Row):
    """A measured row. Unknown values are null."""

    offset: int
    """Byte offset of its line."""
    format: str
    operation: str | None
    time_ns: float | None
    """Time as printed, in ns; an integer if it has no fraction."""
    printed_time: str
    printed_unit: str
    workspace_bytes: int | None
    data_bytes: int | None
    status: Literal["ok", "zero", "negative", "inf", "nan", "missing", "failed", "cut"]
    """Status of the time; only rows with the status `ok` may be compared."""
    fields: dict[str, str]
    """Other values of the row, under the tool's names."""


class OmittedOperation(Row):
    """Summary of the rows of one operation that were not kept."""

    format: str
    operation: str | None
    several_operations: bool
    """Whether the rows have several operations."""
    count: int
    min_ns: float | None
    """Shortest comparable time."""
    last_ns: float | None
    """Time of the last row."""


class RejectedRow(Row):
    """A row that could not be read."""

    offset: int
    format: str
    reason: str
    excerpt: str


class Extracted(Row):
    """The output of profilers."""

    records: list[ExtractedRow]
    omitted: list[OmittedOperation]
    rejected: list[RejectedRow]


class _WithFormats(click.Command):
    """Lists the formats at the end of its help."""

    def format_epilog(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        from longpole import bench

        with formatter.section("Formats"):
            formatter.write_dl(list(bench.formats().items()))


@click.command(cls=_WithFormats)
@answers("longpole.cli.bench.extract:Extracted")
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@click.option(
    "--job-format",
    "wanted",
    multiple=True,
    default=("auto",),
    show_default=True,
    metavar="auto|NAME|regex=PATTERN",
    help="Format of the results that jobs print. Repeatable.",
)
@click.option(
    "--died", is_flag=True, help="The process was killed: ignore an incomplete last line."
)
@top_option(10_000)
@answer_options
def extract(
    *, logs: Sequence[str], wanted: Sequence[str], died: bool, top: int, options: Options
) -> int:
    """Extract results from the output of profilers and benchmark tools.

    NAME is one of the formats below. A PATTERN is a regular expression with the groups
    time_ns, time_us, time_ms or time_s, and optionally operation, workspace, bytes and failed;
    other groups become fields. LOG can be - for stdin. The exit code is 4 if a log has no
    result that can be compared.

    `longpole bench compare` reads the same files.

    \b
    Examples:
      longpole bench extract profiler.log
      longpole bench extract run.log --job-format 'regex=(?P<op>[a-z]+): (?P<time_us>[0-9.]+) us'
    """
    return options.emit_each(
        _answer(log, wanted, died=died, max_rows=top, is_debugging=options.debug) for log in logs
    )


def _answer(
    log: str, wanted: Sequence[str], *, died: bool, max_rows: int, is_debugging: bool
) -> Answer:
    """Extract from one log; an error does not affect the others."""
    from longpole import bench

    source = sys.stdin.buffer if log == "-" else log
    try:
        found = bench.extract(source, format=wanted, died=died, max_rows=max_rows)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--job-format'") from error
    except OSError as error:
        if is_debugging:
            raise
        return failed(_SCHEMA, Problem.of(error).at(log))
    return _found(log, found)


def _found(log: str, found: Extraction) -> Answer:
    has_result = "ok" in found.records["status"] or any(it.fastest for it in found.omitted)
    table = _table(log, found)
    document = Document(
        schema=_SCHEMA,
        input={"path": log, "bytes": found.n_bytes},
        status=("partial" if found.rejected_counts or found.omitted else "ok")
        if has_result
        else "abstained",
        abstains_because=[] if has_result else [Abstention("no_result")],
        warnings=_warnings(found),
        forms_with_warnings=DATA_FORMATS,
        data=lambda: {
            "records": list(_records(found)),
            "omitted": [_summary(rows) for rows in found.omitted],
            "rejected": found.rejected.to_dicts(),
        },
        truncated=_truncated(found),
        blocks=lambda: _blocks(log, table),
        records=lambda: table.iter_rows(named=True),
        columns=table.columns,
        csv_rows=lambda: csv_rows(table, whole=("time_ns",)),
    )
    return document, exit_codes.OK if has_result else exit_codes.INCONCLUSIVE


def _warnings(found: Extraction) -> list[Warned]:
    rejected = found.rejected
    warnings = []
    for reason, count in found.rejected_counts.items():
        first = rejected.filter(rejected["reason"] == reason).head(1)
        places = "".join(
            f", the first at byte {offset}: {name_of(excerpt)}"
            for offset, excerpt in first.select("offset", "excerpt").iter_rows()
        )
        message = f"{count_of(count, 'row')} could not be read ({reason}){places}"
        warnings.append(Warned(reason, count, message, "not among the records"))
    if n_omitted := sum(rows.n_rows for rows in found.omitted):
        kept = found.records.height
        message = f"{count_of(n_omitted, 'row')} beyond the first {kept:,} summarised by operation"
        warnings.append(Warned("max_rows", n_omitted, message, "not shown; see --top"))
    return warnings


def _summary(rows: OmittedRows) -> Record:
    fastest = rows.fastest
    return {
        "format": rows.format,
        "operation": rows.operation,
        "several_operations": rows.is_rest,
        "count": rows.n_rows,
        "min_ns": None if fastest is None else without_point(fastest.time_ns),
        "last_ns": without_point(rows.last_ns),
    }


def _records(found: Extraction) -> Iterator[dict[str, Any]]:
    """Yield every record with its fields."""
    fields: dict[int, dict[str, str]] = {}
    for record, name, value in found.fields.iter_rows():
        fields.setdefault(record, {}).setdefault(name, value)
    for number, row in enumerate(found.records.iter_rows(named=True)):
        yield row | {"time_ns": without_point(row["time_ns"]), "fields": fields.get(number, {})}


def _truncated(found: Extraction) -> dict[str, Any] | None:
    rejected, n_kept = sum(found.rejected_counts.values()), found.records.height
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


def _blocks(log: str, table: pl.DataFrame) -> list[Block]:
    if table.is_empty():
        headline = Headline(f"{name_of(log)}: no row of a format that was looked for")
        return [headline, Sentence(_hint(log))]
    first, *rest = _COLUMNS
    named = [Column(name) for name in table.columns[len(_WRITTEN) :]]
    columns = [first, *named, *rest]
    chosen = table.select(column.title for column in columns)
    times = [without_point(time_ns) for time_ns in table["time_ns"]]
    rows = [
        [
            time_ns if column.title == "time_ns" else value
            for column, value in zip(columns, row, strict=True)
        ]
        for row, time_ns in zip(chosen.iter_rows(), times, strict=True)
    ]
    return [Headline(name_of(log)), Table(columns, rows)]


def _hint(log: str) -> str:
    """Return what to do with a file that has no rows."""
    head = b""
    if not is_pipe(log):
        with suppress(OSError), open_file(log) as file:
            head = file.read(_HEAD_BYTES)
    answer = f"ask `longpole summary {shlex.quote(log)}`."
    if b'"traceEvents"' in head:
        return f"It is a trace: {answer}"
    if (kind := binary_kind(head)) is not None:
        return f"It is {kind}, not the output of a benchmark; if it is a trace, {answer}"
    return (
        "`longpole bench extract --help` lists the formats; for another, give its pattern, such as "
        "--job-format 'regex=(?P<op>[a-z]+): (?P<time_us>[0-9.]+) us'."
    )


def _table(log: str, found: Extraction) -> pl.DataFrame:
    """Return the records, with a column for each group that a pattern of the user names."""
    import polars as pl

    records = found.records.with_columns(
        pl.lit(log).alias("log"), pl.col("format", "operation", "status").cast(pl.String)
    )
    table = records.select(_WRITTEN)
    if PATTERN_FORMAT not in table["format"]:
        return table
    rows = table.with_row_index(_INDEX)
    of_patterns = rows.filter(pl.col("format") == PATTERN_FORMAT).select(_INDEX)
    fields = found.fields.rename({"record": _INDEX}).join(of_patterns, on=_INDEX, how="semi")
    fields = fields.with_columns(pl.col("name", "value").cast(pl.String))
    taken = pl.col("name").is_in(_WRITTEN)
    name = pl.when(taken).then(pl.lit("field.") + pl.col("name")).otherwise("name")
    wide = fields.with_columns(name=name).pivot(
        "name", index=_INDEX, values="value", aggregate_function="first"
    )
    joined = rows.join(wide, on=_INDEX, how="left", maintain_order="left")
    return joined.drop(_INDEX)
