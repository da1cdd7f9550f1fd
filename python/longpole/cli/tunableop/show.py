"""`longpole tunableop show`, `diff` and `speedup`: the rows of one file or two."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

import click

from longpole.cli.answer import exit_codes
from longpole.cli.ask.options import Options, answer_options, answers
from longpole.report.blocks import Headline, Notes, Table
from longpole.report.document import Document
from longpole.words.json_schema import types_of
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from longpole.bench.tunableop import Speedup, TunableFile
    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block

from longpole.cli.tunableop.rows import MOST_ROWS, MOST_SHOWN, column_of, frame_rows, rows_answer

__all__ = ["diff", "show", "speedup"]

_SHOWN: Final = (
    *("line", "operation", "dtype_a", "transa", "transb", "matmul_m", "matmul_n", "k"),
    *("batch", "solution", "time_ns", "status"),
)


@click.command()
@answers("longpole.bench.tunableop.records:GemmRow", has_rows=True)
@click.argument("file", metavar="FILE")
@click.option("--untuned", is_flag=True, help="List the untuned GEMMs, not the results.")
@answer_options
def show(*, file: str, untuned: bool, options: Options) -> int:
    """List the rows of a file with their typed columns.

    A file without results lists its untuned GEMMs. The text table shows the first 1,000 rows,
    with M, N and K as torch counts them. JSON and CSV have every row and column.
    `check` lists the lines that cannot be parsed.

    \b
    Examples:
      longpole tunableop show tunableop_results0.csv
      longpole tunableop show tunableop_results0.csv --format csv
    """
    from longpole.bench import tunableop
    from longpole.bench.tunableop.records import require_rows

    found = tunableop.read(file)
    require_rows([found])
    kind: Literal["result", "untuned"] = "result" if found.count("result") else "untuned"
    return options.emit(_shown_answer(found, "untuned" if untuned else kind))


@click.command()
@answers("longpole.bench.tunableop.difference:DiffRow", has_rows=True)
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@answer_options
def diff(*, before: str, after: str, options: Options) -> int:
    """Compare the rows that torch takes from two files.

    The exit code is 1 if they differ. Rows that only differ in their time count as different.
    The text table shows the first 1,000 differences; JSON and CSV have all of them.

    \b
    Examples:
      longpole tunableop diff old/tunableop_results0.csv tunableop_results0.csv
    """
    from longpole.bench import tunableop
    from longpole.bench.tunableop.difference import DiffRow

    rows = tunableop.diff(before, after)
    code = exit_codes.OK if rows.is_empty() else exit_codes.FINDINGS
    headline = f"{count(rows.height, 'difference')} between {before} and {after}"
    answer = rows_answer(
        "diff",
        after,
        headline,
        {"rows": rows},
        DiffRow,
        *("change", "operator", "parameters", "solution_before", "solution_after"),
        *("time_ns_before", "time_ns_after"),
        exit_code=code,
        most=MOST_SHOWN,
    )
    return options.emit(answer)


@click.command()
@answers("longpole.cli.tunableop.data:Speedups")
@click.argument("tuned", metavar="TUNED")
@click.argument("baseline", metavar="BASELINE")
@answer_options
def speedup(*, tuned: str, baseline: str, options: Options) -> int:
    """Show how much tuning gained, from the times in two files.

    BASELINE has the same GEMMs, measured with the solution Default. The exit code is 4 if no
    GEMM has a usable time in both files.

    \b
    Examples:
      longpole tunableop speedup tunableop_results0.csv default0.csv
    """
    from longpole.bench import tunableop

    answer = _speedup_answer(tuned, tunableop.speedup(tuned, baseline))
    return options.emit(answer)


def _shown_answer(file: TunableFile, kind: Literal["result", "untuned"]) -> Answer:
    """Answer with the rows of a kind, which are read again part by part as they are written."""
    from longpole.bench.tunableop.records import GemmRow

    n_rows = file.count(kind)
    tied = ", ".join(f"{key} {value}" for key, value in file.validators.items())
    what = count(n_rows, "GEMM" if kind == "result" else "untuned GEMM")
    headline = f"{file.name}: {what}"
    if kind == "result":
        headline += f", {tied or 'no validators'}"

    def parts() -> Iterator[pl.DataFrame]:
        columns = list(types_of(GemmRow))
        return (part.filter(part["kind"] == kind).select(columns) for part in file.parts())

    def blocks() -> list[Block]:
        rows = islice((row for part in parts() for row in part.iter_rows(named=True)), MOST_SHOWN)
        cells = [[row[name] for name in _SHOWN] for row in rows]
        titles = [column_of(name, types_of(GemmRow)[name]) for name in _SHOWN]
        rest = n_rows - len(cells)
        notes = f"{count(rest, 'more row')}; --format csv has all of them"
        return [
            Headline(headline),
            *([Table(titles, cells)] if cells else []),
            *([Notes([notes])] if rest else []),
        ]

    document = Document(
        schema="longpole.tunableop.show/1",
        input={"path": file.name},
        blocks=blocks,
        columns=tuple(types_of(GemmRow)),
        **frame_rows({}, parts),
    )
    return document, exit_codes.OK


def _speedup_answer(tuned: str, found: Speedup) -> Answer:
    """Report the gain from tuning; exit code 4 if no GEMM has a time on both sides."""
    from longpole.bench.tunableop.difference import SpeedupRow
    from longpole.cli.tunableop.data import Speedups

    n_rows, mean, whole = found.rows.height, found.geometric_mean, found.of_one_call_each
    if mean is None or whole is None:
        headline = "no GEMM has a usable time in both files"
    else:
        headline = (
            f"{mean:.3f} times as fast on {count(n_rows, 'GEMM')} (geometric mean), "
            f"{whole:.3f} times when each is called once"
        )
    notes = [
        f"{count(number, 'GEMM')} {what}"
        for number, what in (
            (found.n_unmatched, "of the tuned file without a time on both sides"),
            (found.n_not_default, "of the baseline measured with another solution than Default"),
        )
        if number
    ]
    return rows_answer(
        "speedup",
        tuned,
        headline,
        Speedups(geometric_mean=mean, of_one_call_each=whole, rows=found.rows),
        SpeedupRow,
        *("operator", "parameters", "solution", "time_ns", "baseline_ns", "gain_ns"),
        notes=notes,
        most=MOST_ROWS,
        exit_code=exit_codes.OK if n_rows else exit_codes.INCONCLUSIVE,
    )
