"""`longpole bench extract`: the records in what profilers printed."""

from __future__ import annotations

import csv
import io
import json
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import click

from longpole.cli import exit_codes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from longpole.bench import Extraction

__all__ = ["extract"]

SCHEMA: Final = "longpole.bench.extract/1"
COLUMNS: Final = ("operation", "time_ns", "workspace_bytes", "data_bytes", "status", "format")
# A spreadsheet takes a text that begins so for a formula.
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\0")


@click.command()
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@click.option(
    "--format",
    "formats",
    multiple=True,
    default=("auto",),
    metavar="auto|NAME|regex=PATTERN",
    help="What to look for; may be given several times.  [default: auto, every format]",
)
@click.option("--died", is_flag=True, help="The process was killed: do not trust a cut last line.")
@click.option(
    "--to",
    "write_as",
    type=click.Choice(["text", "json", "jsonl", "csv", "md"]),
    default="text",
    help="How to print the records.  [default: text]",
)
def extract(logs: Sequence[str], formats: Sequence[str], *, died: bool, write_as: str) -> int:
    r"""Print what was measured, out of the output of profilers.

    Names: aitemplate, cutlass, cutlass-csv, hipblaslt, rocblas, ncu, nccl. A pattern
    has groups of these names: time_ns, time_us, time_ms or time_s, operation,
    workspace, bytes; all other groups are printed as fields. LOG may be - for the
    standard input.

    Exit code 1 means that nothing was found that may be compared.

    \b
    Examples:
      longpole bench extract profiler.log
      longpole bench extract run.log --format 'regex=(?P<op>\w+): (?P<time_us>\S+) us'
    """
    found: list[tuple[str, Extraction]] = []
    for log in logs:
        try:
            found.append((log, _extract(log, formats, died=died)))
        except OSError as error:
            click.echo(f"error: cannot read {_printable(log)}: {error.strerror}", err=True)
            return exit_codes.UNREADABLE
    for line in _warnings(found):
        click.echo(f"warning: {line}", err=True)
    WRITERS[write_as](found)
    is_selectable = any(extraction.best() for _, extraction in found)
    return exit_codes.OK if is_selectable else exit_codes.FINDINGS


def _extract(log: str, formats: Sequence[str], *, died: bool) -> Extraction:
    from longpole import bench

    source = sys.stdin.buffer if log == "-" else log
    try:
        return bench.extract(source, format=formats, died=died)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--format") from error


def _warnings(found: Sequence[tuple[str, Extraction]]) -> list[str]:
    lines = []
    for log, extraction in found:
        rejected = extraction.rejected
        for reason, count in extraction.rejected_counts.items():
            line = f"{_printable(log)}: {count} rows could not be read ({reason})"
            first = rejected.filter(rejected["reason"] == reason).head(1)
            for offset, excerpt in first.select("offset", "excerpt").iter_rows():
                line += f", the first at byte {offset}: {_printable(excerpt)}"
            lines.append(line)
        if not extraction.measurements:
            lines.append(f"{_printable(log)}: no row of a known format")
    return lines


def _rows(found: Sequence[tuple[str, Extraction]]) -> Iterator[dict[str, Any]]:
    """One row a record: its log, what is known of it, its fields."""
    for log, extraction in found:
        fields: dict[int, dict[str, str]] = {}
        for record, name, value in extraction.fields.iter_rows():
            fields.setdefault(record, {}).setdefault(name, value)
        for number, row in enumerate(extraction.records.iter_rows(named=True)):
            row["time_ns"] = _whole(row["time_ns"])
            yield {"log": log, **row, "fields": fields.get(number, {})}


def _write_json(found: Sequence[tuple[str, Extraction]]) -> None:
    rejected = [
        {"log": log, **row}
        for log, extraction in found
        for row in extraction.rejected.iter_rows(named=True)
    ]
    kept = sum(sum(extraction.rejected_counts.values()) for _, extraction in found)
    envelope = {
        "schema": SCHEMA,
        "tool": {"name": "longpole", "version": version("longpole")},
        "inputs": [{"path": log, "bytes": extraction.n_bytes} for log, extraction in found],
        "scope": "the whole of each log",
        "status": "ok" if any(extraction.best() for _, extraction in found) else "nothing_found",
        "warnings": _warnings(found),
        "data": {"records": list(_rows(found)), "rejected": rejected},
        "truncated": len(rejected) < kept,
    }
    click.echo(json.dumps(envelope, indent=2, ensure_ascii=False))


def _write_jsonl(found: Sequence[tuple[str, Extraction]]) -> None:
    for row in _rows(found):
        click.echo(json.dumps(row, ensure_ascii=False))


def _write_csv(found: Sequence[tuple[str, Extraction]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["log", *COLUMNS])
    for row in _rows(found):
        writer.writerow([_cell(row[name]) for name in ("log", *COLUMNS)])
    click.echo(text.getvalue(), nl=False)


def _write_markdown(found: Sequence[tuple[str, Extraction]]) -> None:
    click.echo("| " + " | ".join(COLUMNS) + " |")
    click.echo("|" + " --- |" * len(COLUMNS))
    for row in _texts(found):
        click.echo("| " + " | ".join(text.replace("|", "\\|") for text in row) + " |")


def _write_text(found: Sequence[tuple[str, Extraction]]) -> None:
    table = [COLUMNS, *_texts(found)]
    widths = [max(len(row[column]) for row in table) for column in range(len(COLUMNS))]
    for row in table:
        line = "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())


def _texts(found: Sequence[tuple[str, Extraction]]) -> Iterator[tuple[str, ...]]:
    for row in _rows(found):
        yield tuple("-" if row[name] is None else _printable(str(row[name])) for name in COLUMNS)


def _whole(value: float | None) -> float | None:
    return int(value) if value is not None and value.is_integer() else value


def _cell(value: object) -> object:
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return "'" + value
    return value


def _printable(text: str) -> str:
    """Without what could steer the terminal."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


WRITERS: Final[dict[str, Callable[[Sequence[tuple[str, Extraction]]], None]]] = {
    "text": _write_text,
    "json": _write_json,
    "jsonl": _write_jsonl,
    "csv": _write_csv,
    "md": _write_markdown,
}
