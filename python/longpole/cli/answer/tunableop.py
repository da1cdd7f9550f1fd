"""Results about TunableOp files, as answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import polars as pl

from longpole.bench.tunableop.coverage import CoverageRow
from longpole.bench.tunableop.difference import SpeedupRow
from longpole.bench.tunableop.records import GemmRow
from longpole.bench.tunableop.tune import Failure
from longpole.cli.answer import exit_codes
from longpole.cli.answer.frames import csv_rows, json_rows
from longpole.cli.answer.tunable_data import (
    Checked,
    MergedFiles,
    MergedRow,
    RecordedCoverage,
    Speedups,
    Tuned,
)
from longpole.data import names_of, plain
from longpole.json_schema import types_of
from longpole.report.blocks import Column, Entry, Headline, Notes, Sentence, Table
from longpole.report.document import Abstention, Document
from longpole.wording import count, share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from longpole.bench.tunableop import (
        Coverage,
        Merged,
        Problem,
        Speedup,
        TunableFile,
        Tuning,
    )
    from longpole.cli.answer.emit import Answer
    from longpole.report.blocks import Block, Style

__all__ = [
    "MOST_ROWS",
    "MOST_SHOWN",
    "by_operations",
    "check_answer",
    "coverage_answer",
    "merge_answer",
    "rows_answer",
    "shown_answer",
    "speedup_answer",
    "tuning_answer",
    "wildcard_note",
]

_STYLES: Final[dict[str, Style]] = {"error": "bad", "warning": "warn", "info": "dim"}
_MOST_LINES: Final = 8
_MOST_PLACES: Final = 3
MOST_ROWS: Final = 20
MOST_SHOWN: Final = 1_000
_SHOWN: Final = (
    *("line", "operation", "dtype_a", "transa", "transb", "matmul_m", "matmul_n", "k"),
    *("batch", "solution", "time_ns", "status"),
)
_COUNTS: Final = {"calls", "conflicts", "dropped", "flops", "gemms"}
_NAMES: Final = {"file", "operator", "parameters", "results", "untuned"}
"""Columns of strings that may be shortened."""


def rows_answer(
    name: str,
    path: str | None,
    headline: str,
    data: Any,
    row: type,
    *shown: str,
    notes: Sequence[str] = (),
    exit_code: int = exit_codes.OK,
    most: int | None = None,
) -> Answer:
    """Answer with rows of a declared type; text output has `most` rows and the columns `shown`."""
    types = types_of(row)
    columns = shown or tuple(types)
    fields = _fields(data)
    given = fields["rows"]
    if isinstance(given, pl.DataFrame):
        head = given if most is None else given.head(most)
        cells: Sequence[Sequence[Any]] = head.select(columns).rows()
        n_rows, rows = given.height, _frame_rows(fields, lambda: [given.select(tuple(types))])
    else:
        records = plain(given)
        cells = [[each[column] for column in columns] for each in records[:most]]
        n_rows, rows = len(records), {"data": data, "records": lambda: records}
    more = [f"{count(n_rows - len(cells), 'more row')}"] if len(cells) < n_rows else []

    def blocks() -> list[Block]:
        titles = [_column(name, types[name]) for name in columns]
        table: list[Block] = [Table(titles, cells)] if cells else []
        rest: list[Block] = [Notes([*more, *notes])] if more or notes else []
        return [Headline(headline), *table, *rest]

    document = Document(
        schema=f"longpole.tunableop.{name}/1",
        input={"path": path} if path else {},
        abstains_because=[Abstention("no_rows")] if exit_code == exit_codes.INCONCLUSIVE else [],
        blocks=blocks,
        columns=tuple(types),
        **rows,
    )
    return document, exit_code


def _fields(data: Any) -> Mapping[str, Any]:
    """Return the declared fields of data, unchanged."""
    if isinstance(data, Mapping):
        return data
    cls: Any = type(data)
    return {name: getattr(data, name) for name in names_of(cls)}


def _frame_rows(
    data: Mapping[str, Any], frames: Callable[[], Iterable[pl.DataFrame]]
) -> dict[str, Any]:
    """Return the data of a document, and its rows for each format, made as they are written."""
    return {
        "data": {**data, "rows": []},
        "records": lambda: (row for frame in frames() for row in frame.iter_rows(named=True)),
        "json_rows": lambda: chain.from_iterable(map(json_rows, frames())),
        "csv_rows": lambda: chain.from_iterable(map(csv_rows, frames())),
    }


def shown_answer(file: TunableFile, kind: Literal["result", "untuned"]) -> Answer:
    """Answer with the rows of a kind, which are read again part by part as they are written."""
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
        titles = [_column(name, types_of(GemmRow)[name]) for name in _SHOWN]
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
        **_frame_rows({}, parts),
    )
    return document, exit_codes.OK


def _column(name: str, declared: Any) -> Column:
    """Return how to display a column, by its name and type."""
    types = {declared, *get_args(declared)}
    if "_ns" in name:
        # Durations are displayed with their own unit.
        return Column(name.replace("_ns", ""), "duration")
    if name.startswith("share"):
        return Column(name, "share")
    if types & {int, float}:
        return Column(name, "count" if name in _COUNTS else "number")
    if bool in types:
        return Column(name, "flag")
    return Column(name, "name" if name in _NAMES else "text")


def check_answer(path: str, problems: Sequence[Problem]) -> Answer:
    """List problems with their codes; errors and warnings are findings."""
    is_bad = any(problem.severity != "info" for problem in problems)
    document = Document(
        schema="longpole.tunableop.check/1",
        input={"path": path},
        data=Checked(problems=list(problems)),
        blocks=lambda: _problems(path, problems),
        records=lambda: [{**each.to_dict(), "lines": _lines(each.lines)} for each in problems],
    )
    return document, exit_codes.FINDINGS if is_bad else exit_codes.OK


def _problems(path: str, problems: Sequence[Problem]) -> list[Block]:
    if not problems:
        return [Sentence(f"{path}: no problems found")]
    by_code: dict[str, list[Problem]] = {}
    for problem in problems:
        by_code.setdefault(problem.code, []).append(problem)
    order = sorted(by_code, key=lambda code: list(_STYLES).index(by_code[code][0].severity))
    return [Headline(path), *(_entry(code, by_code[code]) for code in order)]


def _entry(code: str, problems: Sequence[Problem]) -> Entry:
    first = problems[0]
    rest = len(problems) - _MOST_PLACES
    more = [f"and {rest} more"] if rest > 0 else []
    places = [_place(problem) for problem in problems[:_MOST_PLACES]]
    effect = f"Effect: {first.kind.effect}. Hint: {first.kind.hint}."
    return Entry(first.severity, _STYLES[first.severity], code, [*places, *more, effect])


def _place(problem: Problem) -> str:
    word = "line" if len(problem.lines) == 1 else "lines"
    where = f"{word} {_lines(problem.lines)}: " if problem.lines else ""
    return f"{where}{problem.message}"


def _lines(lines: Iterable[int]) -> str:
    """Return line numbers, up to a limit."""
    numbers = [str(line) for line in lines]
    rest = f" and {len(numbers) - _MOST_LINES} more" if len(numbers) > _MOST_LINES else ""
    return ", ".join(numbers[:_MOST_LINES]) + rest


def merge_answer(written: Sequence[tuple[str, Merged]]) -> Answer:
    """Report what was written, and which solutions were dropped."""
    rows = [
        MergedRow(
            file=path,
            validators=" ".join(f"{key}={value}" for key, value in merged.validators),
            gemms=merged.n_gemms,
            dropped=merged.n_dropped,
            conflicts=len(merged.conflicts),
        )
        for path, merged in written
    ]

    def conflicts() -> Iterator[str]:
        return (str(conflict) for _, merged in written for conflict in merged.conflicts)

    shown = [f"kept the first of: {conflict}" for conflict in islice(conflicts(), MOST_ROWS)]
    data = MergedFiles(conflicts=shown, rows=rows)
    columns = ("file", "gemms", "dropped", "conflicts")
    document, code = rows_answer("merge", None, "Merged:", data, MergedRow, *columns, notes=shown)
    whole = _Deferred(lambda: MergedFiles(conflicts=list(conflicts()), rows=rows))
    return replace(document, data=whole), code


@dataclass(frozen=True, slots=True)
class _Deferred:
    """Data that only some formats need, and that may be large."""

    make: Callable[[], Any]

    def __data__(self) -> Any:
        return self.make()


def speedup_answer(tuned: str, found: Speedup) -> Answer:
    """Report the gain from tuning; exit code 4 if no GEMM has a time on both sides."""
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


def coverage_answer(results: str, found: Coverage) -> Answer:
    """Report which recorded GEMMs are tuned; exit code 1 if some are not."""
    return by_operations(
        results,
        (found.n_tuned, count(found.n_gemms, "GEMM")),
        found.share_of_flops,
        RecordedCoverage(
            n_gemms=found.n_gemms,
            n_tuned=found.n_tuned,
            n_wildcard=found.n_wildcard,
            wildcard_share=found.wildcard_share_of_flops,
            share=found.share_of_flops,
            rows=found.rows,
        ),
        CoverageRow,
        *("match", "operator", "parameters", "solution", "share_of_flops"),
        notes=_wildcards(found),
        exit_code=exit_codes.OK if found.n_tuned == found.n_gemms else exit_codes.FINDINGS,
    )


def _wildcards(found: Coverage) -> list[str]:
    """Return when torch uses the wildcard rows; empty if none matches."""
    if not found.n_wildcard:
        return []
    part = found.wildcard_share_of_flops
    flops = "" if part is None else f" ({share(part)} of the flops)"
    return [wildcard_note(f"{count(found.n_wildcard, 'more GEMM')}{flops}")]


def wildcard_note(what: str) -> str:
    """Return when torch uses a row with wildcards for what only such a row matches."""
    return (
        f"{what} matched only by a row with wildcards, which torch uses from 2.15 on with "
        "PYTORCH_TUNABLEOP_WILDCARD_FALLBACK=1 and PYTORCH_TUNABLEOP_TUNING=0"
    )


def by_operations(
    results: str,
    tuned: tuple[int, str],
    share_of_flops: float | None,
    data: Any,
    row: type,
    *shown: str,
    **others: Any,
) -> Answer:
    """Report how much is tuned if there are no times: the number of GEMMs, and of FLOPs."""
    flops = "" if share_of_flops is None else f", {share(share_of_flops)} of the flops"
    headline = f"{tuned[0]} of {tuned[1]} tuned{flops}"
    return rows_answer("coverage", results, headline, data, row, *shown, most=MOST_ROWS, **others)


def tuning_answer(found: Tuning) -> Answer:
    """Report what was tuned and what failed; return 1 if there are failures."""
    n_failed = len(found.failures)
    n_tuned = found.n_gemms - n_failed
    before = f" ({found.n_known} before)" if found.n_known else ""
    headline = f"{n_tuned} of {count(found.n_gemms, 'GEMM')} tuned{before}" + (
        f", {n_failed} failed:" if n_failed else ""
    )
    outputs = [str(path) for path in found.outputs]
    written = outputs[0] if len(outputs) == 1 else f"{outputs[0]} to {outputs[-1]}"
    return rows_answer(
        "tune",
        None,
        headline,
        Tuned(outputs=outputs, n_gemms=found.n_gemms, n_tuned=n_tuned, rows=found.failures),
        Failure,
        notes=[f"written: {written}"],
        exit_code=exit_codes.FINDINGS if n_failed else exit_codes.OK,
    )
