"""`longpole tunableop show`: the rows of a file, what differs in another, and what is tuned."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from longpole.cli.answer import exit_codes
from longpole.cli.answer.problems import require
from longpole.cli.ask.files import OutputPath
from longpole.cli.ask.options import Options, answers, force_option, reuse_option, shared_options
from longpole.cli.ask.windows import step_option
from longpole.report.blocks import Column, Headline, Notes, Table
from longpole.report.document import Document
from longpole.words.json_schema import types_of
from longpole.words.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import polars as pl

    from longpole.bench.tunableop import Speedup, TunableFile
    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block

from longpole.cli.tunableop.rows import MOST_ROWS, MOST_SHOWN, frame_rows, rows_answer

_TWO: Final = 2
_SHOWN: Final[Mapping[Column, str]] = {
    Column("line", "number"): "line",
    Column("GEMM"): "gemm",
    Column("M", "number"): "matmul_m",
    Column("N", "number"): "matmul_n",
    Column("K", "number"): "k",
    Column("batch", "number"): "batch",
    Column("solution"): "solution",
    Column("time", "duration"): "time_ns",
    Column("status"): "status",
}
"""Columns of the text table; sizes as torch counts them."""
_USUAL: Final[Mapping[str, frozenset[Any]]] = {
    "batch": frozenset({None, 1}),
    "status": frozenset({None, "ok"}),
    "solution": frozenset({None}),
    "time_ns": frozenset({None}),
}
"""Values of a column that is left out if it has no others."""


@click.command()
@answers(
    "longpole.cli.tunableop.data:Shown",
    "longpole.cli.tunableop.data:Differences",
    "longpole.cli.tunableop.data:Recorded",
    "longpole.cli.tunableop.data:RecordedCoverage",
    "longpole.tables.gemm_coverage:GemmCoverage",
    "longpole.tables.execution_coverage:ExecutionCoverage",
)
@click.argument("files", metavar="FILE [RESULTS]", nargs=-1, required=True)
@click.option(
    "--untuned", is_flag=True, help="List the GEMMs of all files once, as recorded for tuning."
)
@reuse_option
@click.option(
    "-o", "--output", type=OutputPath(), metavar="FILE", help="File to write for --untuned."
)
@force_option
@step_option("the whole trace")
@click.option(
    "--et",
    "execution",
    type=click.Path(dir_okay=False, readable=False),
    metavar="FILE",
    help="Execution trace of the same run.",
)
@shared_options
def show(
    *,
    files: tuple[str, ...],
    untuned: bool,
    reuse: tuple[str, ...],
    output: str | None,
    force: bool,
    step: int | None,
    execution: str | None,
    options: Options,
) -> int:
    """List the rows of a file, what differs in another file, or what is tuned.

    One file: its results, or its untuned GEMMs if it has no results. The text table shows the
    first 1,000 rows, with M, N and K as torch counts them; JSON and CSV have every row and column.

    Two results files: the rows that torch takes from them and that differ, and how much faster the
    second file is. Give the times of the solution Default first to see what tuning gained. The
    exit code is 1 if the files differ, also if only times or validators do.

    GEMMs and a results file: how much is tuned. FILE is a file of untuned GEMMs (.csv), weighted by
    their FLOPs, a trace, of which the GEMM time and the critical path count, or an execution
    trace. The exit code is 1 if a GEMM is not tuned, and 4 if there are no GEMMs.

    --untuned lists the GEMMs of any number of files without duplicates, those of results files
    too, and leaves out what has a row in the files of --reuse; -o writes them to a file.

    \b
    Examples:
      longpole tunableop show tunableop_results0.csv
      longpole tunableop show default0.csv tunableop_results0.csv
      longpole tunableop show trace.json.gz tunableop_results0.csv --step 3
      longpole tunableop show --untuned tunableop_untuned*.csv --reuse tuned0.csv -o new0.csv
    """
    require(untuned or not (reuse or output), "--reuse and -o are for --untuned")
    if untuned:
        return options.emit(_untuned(files, reuse, output, force=force))
    require(len(files) <= _TWO, "give one file or two, or --untuned for more")
    if len(files) == 1:
        require(step is None and execution is None, "--step and --et are for a trace and RESULTS")
        return options.emit(_listed(files[0]))
    first, results = files
    if first.endswith(".csv") and _has_results(first):
        require(step is None and execution is None, "--step and --et are for a trace and RESULTS")
        return options.emit(_differences(first, results))
    from longpole.cli.tunableop.coverage import coverage_answer

    return options.emit(coverage_answer(first, results, options, step, execution))


def _has_results(path: str) -> bool:
    from longpole.bench import tunableop
    from longpole.bench.tunableop.records import require_rows

    file = tunableop.read(path)
    require_rows([file])
    return bool(file.count("result"))


def _listed(path: str) -> Answer:
    from longpole.bench import tunableop
    from longpole.bench.tunableop.records import require_rows

    found = tunableop.read(path)
    require_rows([found])
    return _shown_answer(found, "result" if found.count("result") else "untuned")


def _differences(before: str, after: str) -> Answer:
    """Compare two results files: what differs, and how much faster the second is."""
    from longpole.bench import tunableop
    from longpole.bench.tunableop.difference import DiffRow
    from longpole.bench.tunableop.records import require_rows
    from longpole.cli.tunableop.data import Differences

    sides = [tunableop.read(path) for path in (before, after)]
    for side in sides:
        require_rows([side])
    rows, gained = tunableop.diff(*sides), tunableop.speedup(sides[1], sides[0])
    apart = _other_validators(*sides)
    data = Differences(
        geometric_mean=gained.geometric_mean,
        of_one_call_each=gained.of_one_call_each,
        n_timed=gained.rows.height,
        n_not_default=gained.n_not_default,
        same_validators=not apart,
        rows=rows,
    )
    is_same = rows.is_empty() and not apart
    differ = count(rows.height, "difference")
    differ = f"other validators, and {differ} of GEMMs," if apart else differ
    return rows_answer(
        "show",
        after,
        f"{differ} between {before} and {after}{_gain(gained)}",
        data,
        DiffRow,
        *("change", "operator", "parameters", "solution_before", "solution_after"),
        *("time_ns_before", "time_ns_after", "gain_ns"),
        notes=[*apart, *_notes_of(gained, before)],
        exit_code=exit_codes.OK if is_same else exit_codes.FINDINGS,
        most=MOST_SHOWN,
    )


def _other_validators(before: TunableFile, after: TunableFile) -> list[str]:
    """Return which validators differ: torch then ignores at least one of the files."""
    old, new = before.validators, after.validators
    told = [
        f"{name} is {old.get(name, 'missing')} and {new.get(name, 'missing')}"
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    ]
    if not told:
        return []
    return [f"the validators differ, so no torch accepts both files: {'; '.join(told)}"]


def _gain(found: Speedup) -> str:
    mean, whole = found.geometric_mean, found.of_one_call_each
    if mean is None or whole is None:
        return "; no GEMM has a usable time in both"
    return (
        f"; {mean:.3f} times as fast on {count(found.rows.height, 'GEMM')} (geometric mean), "
        f"{whole:.3f} times when each is called once"
    )


def _notes_of(found: Speedup, before: str) -> list[str]:
    n_timed, n_others = found.rows.height, found.n_not_default
    if not n_timed:
        return []
    told = {
        f"without a time in {before}": found.n_unmatched,
        # If none was measured with Default, both files are tuned and nothing is out of place.
        f"measured in {before} with another solution than Default": n_others % n_timed,
    }
    return [f"{count(number, 'GEMM')} {what}" for what, number in told.items() if number]


def _untuned(
    files: Sequence[str], reuse: Sequence[str], output: str | None, *, force: bool
) -> Answer:
    """List recorded GEMMs without duplicates, in a stable order, and write them."""
    import polars as pl

    from longpole.bench import tunableop
    from longpole.bench.tunableop.records import check_rows, require_rows
    from longpole.cli.tunableop.data import KeyRow, Recorded, UntunedRow
    from longpole.words.data import names_of

    sources = [tunableop.read(file) for file in files]
    known = [tunableop.read(file) for file in reuse]
    require_rows(sources)
    check_rows(known)
    found = tunableop.gather_untuned(sources, without=known)
    if output:
        found.write(output, force=force, inputs=[*files, *reuse])
    columns = names_of(UntunedRow)
    rows = pl.concat(part.select(columns) for part in found.parts(columns))
    written = f"; written to {output}" if output else ""
    left = f" without a row in {', '.join(reuse)}" if reuse else ""
    headline = f"{count(rows.height, 'GEMM')} in {count(len(files), 'file')}{left}{written}"
    return rows_answer(
        "show", None, headline, Recorded(rows=rows), UntunedRow, *names_of(KeyRow), most=MOST_ROWS
    )


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
        shown = _cells(rows)
        notes = f"{count(n_rows - MOST_SHOWN, 'more row')}; --format csv has all of them"
        return [Headline(headline), shown, *([Notes([notes])] if n_rows > MOST_SHOWN else [])]

    document = Document(
        schema="longpole.tunableop.show/1",
        input={"path": file.name},
        blocks=blocks,
        columns=tuple(types_of(GemmRow)),
        **frame_rows({}, parts),
    )
    return document, exit_codes.OK


def _cells(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Show rows, without the columns that only have their usual values."""
    named = [{**row, "gemm": _gemm(row)} for row in rows]
    columns = {
        column: name
        for column, name in _SHOWN.items()
        if {row[name] for row in named} - _USUAL.get(name, frozenset())
    }
    return Table(list(columns), [[row[name] for name in columns.values()] for row in named])


def _gemm(row: Mapping[str, Any]) -> str:
    """Return the operation, type and transpositions of a row, such as `Gemm Half TN`."""
    operation = str(row["operation"]).removesuffix("TunableOp")
    return f"{operation} {row['dtype_a']} {row['transa']}{row['transb']}".upper()
