"""Finds what makes torch ignore a file, lose its rows, or choose badly."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from longpole.bench.tunableop.environment import release_of
from longpole.bench.tunableop.names import ordinal_of
from longpole.bench.tunableop.parts import spans
from longpole.bench.tunableop.records import (
    FAMILIES,
    OUTCOME,
    Source,
    TunableFile,
    blocks_of,
    read_all,
    validators_of,
)
from longpole.words.data import Data, computed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import polars as pl

    from longpole.bench.tunableop.records import Line, Validators

Severity: TypeAlias = Literal["error", "warning", "info"]
"""An error if tuned results are lost or torch fails, a warning if they may be."""


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """A kind of problem: severity, meaning, and what to do."""

    severity: Severity
    effect: str
    hint: str


PROBLEMS: Final = {
    "no_validators": ProblemKind(
        "error",
        "torch ignores the whole file",
        "put the validators of the torch that tuned it on top",
    ),
    "missing_validator": ProblemKind(
        "error", "torch ignores the whole file", "tune again, or copy the line from another file"
    ),
    "foreign_validator": ProblemKind(
        "error",
        "torch ignores the whole file; up to 2.9 it overwrites the file at exit, and from 2.10 on "
        "it appends new rows to it, which it will ignore as well",
        "keep a copy of the file, and tune again into a new one",
    ),
    "unexpected_validator": ProblemKind(
        "error", "torch ignores the whole file", "tune again with the installed torch"
    ),
    "duplicate_validator": ProblemKind("info", "none: the lines agree", "delete one"),
    "conflicting_validator": ProblemKind(
        "error",
        "torch takes the last value",
        "find out under which version the rows were tuned",
    ),
    "mixed_validators": ProblemKind(
        "error",
        "the rows were tuned under different versions, and torch takes the last validators "
        "for all of them",
        "`longpole tunableop edit FILE --parts validators -o NEW` separates them",
    ),
    "crlf": ProblemKind(
        "error",
        "torch takes the carriage return for a part of the value: the validators differ and "
        "the whole file is ignored",
        "`longpole tunableop edit FILE -o NEW` writes line feeds",
    ),
    "crlf_row": ProblemKind(
        "error",
        "torch takes the carriage return for a part of the solution's name and fails",
        "`longpole tunableop edit FILE -o NEW` writes line feeds",
    ),
    "byte_order_mark": ProblemKind(
        "error", "torch does not understand the first line", "save the file without the mark"
    ),
    "duplicate_rows": ProblemKind(
        "info", "torch takes the first", "`longpole tunableop edit FILE -o NEW` keeps one"
    ),
    "conflicting_rows": ProblemKind(
        "warning",
        "torch takes the first",
        "`longpole tunableop edit FILE -o NEW` keeps the fastest",
    ),
    "slower_row_first": ProblemKind(
        "error",
        "torch takes the first, which is not the fastest",
        "`longpole tunableop edit FILE -o NEW` keeps the fastest",
    ),
    "default_inf": ProblemKind(
        "warning",
        "no solution could be run when it was tuned; torch uses its default",
        "delete the row to have it tuned again",
    ),
    "unusable_time": ProblemKind(
        "warning", "torch uses the solution; its time has no meaning", "tune it again"
    ),
    "glued_rows": ProblemKind(
        "error",
        "torch reads the first row of the line and loses the others",
        "`longpole tunableop edit FILE -o NEW` takes them apart",
    ),
    "unknown_line": ProblemKind(
        "warning",
        "torch uses a line of three fields or more if it has such an operator and meets the "
        "shape, and skips any other",
        "delete it unless a newer torch wrote it",
    ),
    "cut_line": ProblemKind(
        "error",
        "the writer died within the line; a row that is appended is glued to it",
        "delete the line",
    ),
    "no_final_newline": ProblemKind(
        "warning",
        "the last row may be cut short, and a row that is appended is glued to it",
        "`longpole tunableop edit FILE -o NEW` ends it; check its time",
    ),
    "unknown_solution": ProblemKind(
        "warning",
        "if torch does not know the solution, it stops with an error up to 2.12, and from 2.14 on "
        "it uses its default without a message",
        "`longpole tunableop edit FILE --where ... --to none -o NEW` removes the row",
    ),
    "layout_mismatch": ProblemKind(
        "warning", "torch never looks the row up", "the row was edited by hand: delete it"
    ),
    "old_row_format": ProblemKind(
        "warning",
        "torch 2.7 and later look GEMMs up with leading dimensions and never find the row",
        "tune it again",
    ),
    "untuned_rows": ProblemKind(
        "info", "torch skips rows without a solution", "tune them with `longpole tunableop tune`"
    ),
    "blank_line": ProblemKind(
        "warning", "undefined: some versions of torch read a field that is not there", "delete it"
    ),
    "no_ordinal": ProblemKind(
        "warning",
        "torch puts the ordinal of a device into the name and looks for another file",
        "name it as `longpole tunableop check` without a file says",
    ),
    "empty": ProblemKind("info", "torch tunes from scratch", "nothing"),
    "mixed_versions": ProblemKind(
        "warning",
        "a process that reads one of the files ignores the other",
        "tune all of them with the same torch",
    ),
}


@dataclass(frozen=True, slots=True)
class Problem(Data):
    """One problem of a file."""

    code: str
    file: str
    lines: tuple[int, ...]
    """Line numbers from 1; empty if it concerns the whole file."""
    message: str

    @property
    def kind(self) -> ProblemKind:
        """Severity, meaning, and what to do."""
        return PROBLEMS[self.code]

    @computed
    def severity(self) -> Severity:
        """An error if tuned results are lost or torch fails, a warning if they may be."""
        return self.kind.severity

    @computed
    def effect(self) -> str:
        """Effect of the problem."""
        return self.kind.effect

    @computed
    def hint(self) -> str:
        """What to do."""
        return self.kind.hint


# The validator that torch checks first.
_MANDATORY: Final = "PT_VERSION"

# The first version whose rows have leading dimensions.
_LEADING_SINCE: Final = (2, 7)

# The columns that the checks of single rows use, in addition to places, kinds and times.
_CHECKED: Final = frozenset(
    ("layout", "transa", "transb", "lda", "wildcards", "solution", "family", "time")
)

_SEVERITIES: Final = ("error", "warning", "info")

_REASONS: Final = {
    "foreign": "begins like no line of TunableOp",
    "too_few_fields": "has too few fields",
    "operator": "names an unknown operator or data type",
    "parameters": "has parameters in an unknown form",
    "solution": "has no solution name",
    "encoding": "is not UTF-8",
}


def check(
    sources: Iterable[Source] | Source,
    *,
    expected: Mapping[str, str] | None = None,
    is_complete: bool = False,
) -> list[Problem]:
    r"""Find problems of TunableOp files.

    Parameters
    ----------
    sources
        Files of results or untuned GEMMs. Several are also compared with one another.
    expected
        Known validators of the torch that will read them; `installed_validators` returns those of
        the installed one.
    is_complete
        Whether `expected` has all of them, so that any other is a problem too.

    Returns
    -------
    list of Problem
        By file, then by line.

    Examples
    --------
    >>> for problem in check(b"GemmTunableOp_float_NN,nn_1_2_3,Default,inf\n"):
    ...     print(problem.severity, problem.code, problem.lines)
    error no_validators (1,)
    warning default_inf (1,)
    """
    files = read_all(sources)
    problems = [
        problem
        for file in files
        for problem in sorted(_problems(file, expected, is_complete=is_complete), key=_place)
    ]
    return [*problems, *_differing(files)]


def _problems(
    file: TunableFile, expected: Mapping[str, str] | None, *, is_complete: bool
) -> Iterator[Problem]:
    if not file.text:
        yield Problem("empty", file.name, (), "the file is empty")
        return
    rows = list(_suspicious(file))
    yield from _texts(file, rows)
    yield from _carriage_returns(file)
    yield from _rows(file, rows)
    if file.count("result") or file.validators:
        yield from _validators(file)
        yield from _against(file, expected, is_complete=is_complete)
        yield from _name(file)
    yield from _repeated(file)


def _suspicious(file: TunableFile) -> Iterator[dict[str, Any]]:
    """Yield the pieces that may have a problem of their own, for `_texts` and `_faults`."""
    import polars as pl

    kind, outcome = pl.col("kind"), pl.col("status")
    letters = pl.concat_str("transa", "transb").str.to_uppercase().str.replace_all("C", "T")
    is_old = pl.col("lda").is_null() & pl.col("wildcards").is_null()
    version = release_of(file.validators.get(_MANDATORY, ""))
    is_suspicious = (
        ~kind.is_in(["validator", "result", "untuned"])
        | (pl.col("ending") == "nothing")
        | (kind.is_in(["result", "untuned"]) & (pl.col("layout") != letters))
        | (kind.is_in(["result", "untuned"]) & is_old & _has_leading(version))
        | ((kind == "result") & ~outcome.is_in(["ok", "missing"]))
        | ((kind == "result") & ~pl.col("family").is_in(FAMILIES))
    )
    for part in file.parts(_CHECKED):
        yield from part.filter(is_suspicious).iter_rows(named=True)


def _place(problem: Problem) -> tuple[tuple[int, ...], int, str]:
    """Sort key: first line, then severity, worst first."""
    return problem.lines[:1], _SEVERITIES.index(problem.severity), problem.code


def _texts(file: TunableFile, rows: list[dict[str, Any]]) -> Iterator[Problem]:
    """Check lines and their ends, independent of their contents."""

    def problem(code: str, row: Mapping[str, Any], message: str) -> Problem:
        return Problem(code, file.name, (row["line"],), message)

    end = len(file.text)
    for row in rows:
        is_last = row["offset"] + row["n_bytes"] == end
        if row["kind"] == "byte_order_mark":
            yield problem("byte_order_mark", row, "the file begins with a byte order mark")
        elif row["kind"] == "blank":
            yield problem("blank_line", row, "the line is blank")
        elif row["kind"] == "unknown":
            is_cut = is_last and row["ending"] == "nothing" and row["reason"] != "foreign"
            code = "cut_line" if is_cut else "unknown_line"
            yield problem(code, row, f"the line {_REASONS[row['reason']]}")
        elif is_last and row["ending"] == "nothing":
            yield problem("no_final_newline", row, "the last line has no line end")
        if row["ending"] == "nothing" and not is_last and row["kind"] != "byte_order_mark":
            yield problem("glued_rows", row, "two rows are on one line")


def _carriage_returns(file: TunableFile) -> Iterator[Problem]:
    import polars as pl

    returns = file.outline.filter(pl.col("ending") == "crlf")
    validators = returns.filter(pl.col("kind") == "validator")["line"].to_list()
    if validators:
        yield Problem("crlf", file.name, tuple(validators), "the validators end in CR LF")
    # The time of a row is its fourth field.
    results = returns.filter(pl.col("kind") == "result")
    texts = zip(results["line"], spans([file.text], results), strict=True)
    untimed = tuple(line for line, text in texts if not _has_time(text))
    if untimed:
        yield Problem("crlf_row", file.name, untimed, "rows without a time end in CR LF")


def _has_time(row: bytes) -> bool:
    return row.partition(b",BLAS_PARAMS: - {")[0].count(b",") > 2  # noqa: PLR2004 (three fields)


def _rows(file: TunableFile, rows: list[dict[str, Any]]) -> Iterator[Problem]:
    """Check each row on its own."""
    version = release_of(file.validators.get(_MANDATORY, ""))
    for row in rows:
        for code, message in _faults(row, version):
            yield Problem(code, file.name, (row["line"],), message)
    if file.count("untuned") and file.count("result"):
        outline = file.outline
        untuned = tuple(outline.filter(outline["kind"] == "untuned")["line"].to_list())
        message = "rows without a solution are among the results"
        yield Problem("untuned_rows", file.name, untuned, message)


def _faults(row: Mapping[str, Any], version: tuple[int, int] | None) -> Iterator[tuple[str, str]]:
    if row["kind"] not in {"result", "untuned"}:
        return
    letters = (row["transa"] + row["transb"]).upper().replace("C", "T")
    if row["layout"] != letters:
        yield "layout_mismatch", f"the operator says {row['layout']}, the parameters {letters}"
    if _has_leading(version) and row["lda"] is None and not row["wildcards"]:
        yield "old_row_format", "the row has no leading dimensions"
    if row["kind"] == "untuned":
        return
    if row["family"] == "default" and row["status"] == "inf":
        yield "default_inf", "the time of the default is infinite"
    elif row["status"] not in {"ok", "missing"}:
        yield "unusable_time", f"the time is {row['time']}"
    if row["family"] not in FAMILIES:
        yield "unknown_solution", f"{row['solution']} is not a solution of a known library"


def _has_leading(version: tuple[int, int] | None) -> bool:
    return version is not None and version >= _LEADING_SINCE


def _validators(file: TunableFile) -> Iterator[Problem]:
    """Check the validators."""
    outline = file.outline
    if not (outline["kind"] == "validator").any():
        first = outline.filter(outline["kind"] == "result")["line"].head(1)
        yield Problem("no_validators", file.name, tuple(first), "there is no validator")
        return
    if _MANDATORY not in file.validators:
        yield Problem("missing_validator", file.name, (), f"{_MANDATORY} is missing")
    blocks = blocks_of(file.text, outline)
    if len({validators for validators, _ in blocks}) > 1:
        yield _mixed(file, blocks)
        return
    by_key: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for line, key, value in _placed_validators(file):
        by_key[key].append((line, value))
    for key, repeated in by_key.items():
        values = list(dict.fromkeys(value for _, value in repeated))
        if len(repeated) > 1:
            code = "conflicting_validator" if len(values) > 1 else "duplicate_validator"
            lines = tuple(line for line, _ in repeated)
            yield Problem(code, file.name, lines, f"{key} is given as {' and '.join(values)}")


def _placed_validators(file: TunableFile) -> Iterator[tuple[int, str, str]]:
    """Yield the line, key and value of each validator."""
    outline = file.outline
    lines = outline.filter(outline["kind"] == "validator")["line"]
    for line, (key, value) in zip(lines, validators_of(file.text, outline), strict=True):
        yield line, key, value


def _mixed(file: TunableFile, blocks: list[tuple[Validators, pl.DataFrame]]) -> Problem:
    """Return the problem of rows with different validators."""
    texts = [
        f"{results.height} rows{_from(results)} under "
        f"{dict(validators).get(_MANDATORY, 'no version')}"
        for validators, results in blocks
    ]
    lines = tuple(results["line"][0] for _, results in blocks if results.height)
    return Problem("mixed_validators", file.name, lines, "; ".join(texts))


def _from(results: pl.DataFrame) -> str:
    return f" from line {results['line'][0]}" if results.height else ""


def _against(
    file: TunableFile, expected: Mapping[str, str] | None, *, is_complete: bool
) -> Iterator[Problem]:
    """Compare the validators with those of the torch that will read the file."""
    lines = {key: line for line, key, _ in _placed_validators(file)}
    for key, value in (expected or {}).items():
        given = file.validators.get(key)
        if given is None and lines:
            yield Problem(
                "missing_validator", file.name, (), f"{key} is missing; torch has {value}"
            )
        elif given is not None and given != value:
            message = f"{key} is {given}; torch has {value}"
            yield Problem("foreign_validator", file.name, (lines[key],), message)
    for key in sorted(lines.keys() - (expected or {}).keys()) if is_complete else ():
        yield Problem(
            "unexpected_validator",
            file.name,
            (lines[key],),
            f"{key} is not one of torch's validators",
        )


def _name(file: TunableFile) -> Iterator[Problem]:
    if file.path is not None and ordinal_of(file.path) is None:
        yield Problem("no_ordinal", file.name, (), "the file name has no ordinal of a device")


def _repeated(file: TunableFile) -> Iterator[Problem]:
    """Check for several rows of one GEMM."""
    import polars as pl

    rows = file.outline.drop_nulls("gemm").with_columns(is_result=pl.col("kind") == "result")
    has_result = pl.col("is_result").any().over("gemm")
    relevant = rows.filter(pl.col("is_result") | ~has_result)
    repeated = relevant.filter(pl.len().over("gemm") > 1).sort("gemm", maintain_order=True)
    places = repeated.select("gemm", *OUTCOME).iter_rows()
    for _, group in groupby(places, key=itemgetter(0)):
        lines = [file.line_at(*row) for _, *row in group]
        code, message = _repetition(lines)
        numbers = tuple(line.line for line in lines)
        yield Problem(code, file.name, numbers, f"{','.join(lines[0].key)}: {message}")


def _repetition(lines: list[Line]) -> tuple[str, str]:
    if len({line.solution for line in lines}) == 1:
        return "duplicate_rows", f"{len(lines)} rows that agree"
    text = ", ".join(f"{line.solution} {_time(line)} on line {line.line}" for line in lines)
    first, best = lines[0], min(lines, key=lambda line: line.rank)
    is_slower = best.time_ns is not None and first.time_ns != best.time_ns
    return "slower_row_first" if is_slower else "conflicting_rows", text


def _time(line: Line) -> str:
    return "without a time" if line.time_ns is None else f"in {line.time_ns / 1e3:.4g} us"


def _differing(files: list[TunableFile]) -> Iterator[Problem]:
    """Compare the validators of files that may be used together."""
    tied = [file for file in files if file.validators and blocks_of(file.text, file.outline)]
    for file in tied[1:]:
        first, mine = tied[0].validators, file.validators
        keys = [
            key for key in sorted(first.keys() | mine.keys()) if first.get(key) != mine.get(key)
        ]
        if keys:
            text = ", ".join(
                f"{key} ({first.get(key, 'missing')}, here {mine.get(key, 'missing')})"
                for key in keys
            )
            message = f"the validators differ from those of {tied[0].name}: {text}"
            yield Problem("mixed_versions", file.name, (), message)
