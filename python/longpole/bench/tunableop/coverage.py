"""Determines which GEMMs a results file covers, and which remain to be tuned."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from longpole.bench.tunableop.inputs import Gemm
from longpole.bench.tunableop.matmul import PRODUCTS, gemms_of
from longpole.bench.tunableop.parts import names_at, outline_of
from longpole.bench.tunableop.records import OUTCOME, Source, TunableFile, read, read_all
from longpole.rows.frames import frame_schema
from longpole.words.data import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

    from longpole.bench.tunableop.inputs import Argument, Key
    from longpole.bench.tunableop.records import Line

MatchKind: TypeAlias = Literal["tuned", "wildcard", "same_size", "missing"]
"""`tuned`: by its own row. `missing`: no row. `wildcard`: only a wildcard row matches, which torch
uses with `WILDCARD_FALLBACK=1` and without tuning; not counted as tuned. `same_size`: a row has the
same size and type, but the GEMM is not known well enough to tell whether it is the same."""


ProductKind: TypeAlias = Literal[MatchKind, "not_tunable", "unknown"]
"""`not_tunable`: torch runs the product without TunableOp. `unknown`: its arguments do not
determine the key of its row."""


class Match(NamedTuple):
    """The entry of a results file for a GEMM."""

    kind: MatchKind
    key: Key
    line: Line | None


class Product(NamedTuple):
    """The entry of a results file for a matrix product: its key, and the row."""

    kind: ProductKind
    operator: str | None = None
    parameters: str | None = None
    solution: str | None = None
    time_ns: float | None = None
    flops: int | None = None


class Tuned:
    """The rows of a results file, for looking up GEMMs as torch does.

    Parameters
    ----------
    source
        A results file; of several rows for one GEMM, the first counts.
    """

    def __init__(self, source: Source) -> None:
        self._file = read(source)
        self._wildcards = Wildcards(self._file)

    def product(self, name: str, arguments: Sequence[Argument]) -> Product:
        """Find the row for a matrix product of torch by its operator and arguments."""
        if name not in PRODUCTS:
            return Product("not_tunable")
        gemms = gemms_of(name, arguments)
        if not gemms:
            return Product("unknown")
        kind, key, line = self.look_up(gemms)
        return Product(kind, *key, line and line.solution, line and line.time_ns, gemms[0].flops)

    def look_up(self, gemms: Sequence[Gemm]) -> Match:
        """Find the row for a GEMM, given all its possible names.

        A GEMM without leading dimensions is found only by size and type if the file has them. In a
        file of torch up to 2.6, which has none, they are ignored.
        """
        names = [self._as_in_file(gemm) for gemm in gemms]
        if gemms[0].leading is None:
            for gemm in gemms:
                if line := self._by_size.get(_size(gemm)):
                    return Match("same_size", line.key, line)
        else:
            for gemm in names:
                found = self.row_for(gemm.key)
                if found.kind != "missing":
                    return found
        return Match("missing", min(names, key=self._is_foreign).key, None)

    def _as_in_file(self, gemm: Gemm) -> Gemm:
        """Remove fields that the torch version of the file does not write."""
        return gemm if self._has_leading else replace(gemm, leading=None)

    def _is_foreign(self, gemm: Gemm) -> bool:
        """Whether a scaled product has the name that a build for other GPUs uses."""
        return gemm.tail.startswith("_a_") != ("CUBLASLT_VERSION" in self._file.validators)

    @cached_property
    def _has_leading(self) -> bool:
        """Whether rows have leading dimensions; true for a file without rows."""
        return not self._rows or any(b"_ld_" in key for key in self._rows)

    def row_for(self, key: Key) -> Match:
        """Find the row for a GEMM by its signatures: its own, or else a wildcard row."""
        row = self._rows.get(",".join(key).encode())
        if row is not None:
            return Match("tuned", key, self._file.line_at(*self._results.row(row)))
        line = self._wildcards.matching(key)
        return Match("missing" if line is None else "wildcard", key, line)

    @cached_property
    def _results(self) -> pl.DataFrame:
        outline = self._file.outline
        results = outline.filter(outline["kind"] == "result")
        return results.unique("gemm", keep="first", maintain_order=True).select(OUTCOME)

    @cached_property
    def _rows(self) -> dict[bytes, int]:
        """The number of the row of each GEMM, by its two signatures."""
        places = self._results.select("offset", "length").iter_rows()
        text = self._file.text
        lines = (text[offset : offset + length] for offset, length in places)
        return {b",".join(line.split(b",", 2)[:2]): row for row, line in enumerate(lines)}

    @cached_property
    def _by_size(self) -> dict[tuple[Any, ...], Line]:
        rows = self._file.results.iter_rows(named=True)
        found: dict[tuple[Any, ...], Line] = {}
        for row in rows:
            found.setdefault(_size(Gemm.from_row(row)), self._file.line(row))
        return found


class Wildcards:
    """The rows of a results file with wildcards.

    Parameters
    ----------
    file
        The results file.
    """

    def __init__(self, file: TunableFile) -> None:
        outline = file.outline
        rows = outline.filter((outline["kind"] == "result") & outline["has_wildcards"])
        self._lines = [(_pattern(line.key[1]), line) for line in file.lines_of(rows)]

    def matching(self, key: Key) -> Line | None:
        """Return the first row that matches a GEMM."""
        for pattern, line in self._lines:
            if line.key[0] == key[0] and pattern.fullmatch(key[1]):
                return line
        return None


class ProductRow(Row):
    """A distinct matrix product of a trace, and its entry in the results file."""

    name: str
    """The operator of torch."""
    operator: str | None
    """Operator signature; null if the inputs do not determine it."""
    parameters: str | None
    """Parameter signature; null if the inputs do not determine it."""
    match: ProductKind
    solution: str | None
    calls: int


class CoverageRow(Row):
    """A recorded GEMM, and its entry in the results file."""

    operator: str
    parameters: str
    match: Literal["tuned", "wildcard", "missing"]
    solution: str | None
    time_ns: float | None
    flops: int | None
    """Floating-point operations; null with wildcards, or beyond 63 bits."""
    share_of_flops: float | None


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a list of GEMMs is tuned."""

    rows: pl.DataFrame
    """A `CoverageRow` for each GEMM, most expensive untuned first."""

    @property
    def n_gemms(self) -> int:
        """Number of GEMMs."""
        return self.rows.height

    @property
    def n_tuned(self) -> int:
        """Number of GEMMs with their own row."""
        return int((self.rows["match"] == "tuned").sum())

    @property
    def n_wildcard(self) -> int:
        """Number of GEMMs with only a wildcard row.

        torch 2.15 uses it with `PYTORCH_TUNABLEOP_WILDCARD_FALLBACK=1` and tuning off.
        """
        return int((self.rows["match"] == "wildcard").sum())

    @property
    def share_of_flops(self) -> float | None:
        """Fraction of FLOPs covered by tuned GEMMs; None without GEMMs."""
        return self._share("tuned")

    @property
    def wildcard_share_of_flops(self) -> float | None:
        """Fraction of FLOPs with only a wildcard row; None without GEMMs."""
        return self._share("wildcard")

    def _share(self, kind: MatchKind) -> float | None:
        total = sum(self.rows["flops"].drop_nulls().to_list())
        flops = self.rows.filter(self.rows["match"] == kind)["flops"].drop_nulls()
        return sum(flops.to_list()) / total if total else None


def coverage(untuned: Iterable[Source] | Source, results: Source) -> Coverage:
    r"""Report which of the recorded GEMMs a results file has a row for.

    Parameters
    ----------
    untuned
        Files of untuned GEMMs; a GEMM that is in several counts once.
    results
        The results file.

    Examples
    --------
    >>> recorded = b"GemmTunableOp_float_NN,nn_1_2_3\nGemmTunableOp_float_NN,nn_4_5_6\n"
    >>> covered = coverage(recorded, b"GemmTunableOp_float_NN,nn_4_5_6,Default,0.5\n")
    >>> covered.n_tuned, covered.n_gemms, round(covered.share_of_flops, 3)
    (1, 2, 0.952)
    """
    import polars as pl

    recorded, file = read_all(untuned), read(results)
    texts = [*(each.text for each in recorded), file.text]
    rows = outline_of(texts, place=True).drop_nulls("gemm")
    is_result = (pl.col("file") == len(recorded)) & (pl.col("kind") == "result")
    tuned = rows.filter(is_result).unique("gemm", keep="first", maintain_order=True)
    gemms = rows.filter(pl.col("file") < len(recorded)).unique("gemm", keep="first")
    gemms = gemms.select("gemm", "file", "offset", "length", "flops", "place")
    columns = ("file", "offset", "length", "solution", "time_ns")
    found = gemms.join(tuned.select("gemm", *columns), on="gemm", how="left", suffix="_tuned")
    frame = pl.concat([_tuned_rows(texts, found), _other_rows(texts, found, Wildcards(file))])
    flops = pl.col("flops").replace(0, None)
    total = sum(frame["flops"].drop_nulls().to_list())
    shares = frame.with_columns(flops, share_of_flops=flops / (total or 1))
    order = [pl.col("match") == "tuned", pl.col("flops"), "place"]
    ordered = shares.sort(order, descending=[False, True, False], nulls_last=True)
    return Coverage(ordered.drop("place").cast(frame_schema(CoverageRow)))


def _tuned_rows(texts: list[bytes], rows: pl.DataFrame) -> pl.DataFrame:
    """Return the GEMMs for which the file has an exact row, without wildcards."""
    import polars as pl

    found = rows.drop_nulls("solution")
    columns = (pl.col(f"{name}_tuned").alias(name) for name in ("file", "offset", "length"))
    names = names_at(texts, found.select(*columns, "solution"))
    return _with_match(names, pl.repeat("tuned", found.height, eager=True), found)


def _other_rows(texts: list[bytes], rows: pl.DataFrame, wildcards: Wildcards) -> pl.DataFrame:
    """Return the other GEMMs, with the row with wildcards that matches, if any."""
    import polars as pl

    found = rows.filter(pl.col("solution").is_null())
    names = names_at(texts, found)
    lines = [wildcards.matching(key) for key in names.select(names.columns[:2]).iter_rows()]
    matches = ["wildcard" if line else "missing" for line in lines]
    solutions = [line and line.solution for line in lines]
    times = [line and line.time_ns for line in lines]
    return _with_match(
        names.with_columns(pl.Series("solution", solutions, dtype=pl.String)),
        pl.Series(matches, dtype=pl.String),
        found.with_columns(pl.Series("time_ns", times, dtype=pl.Float64)),
    )


def _with_match(names: pl.DataFrame, match: pl.Series, rows: pl.DataFrame) -> pl.DataFrame:
    operator, parameters, solution = names
    columns = (operator, parameters, match.alias("match"), solution)
    return rows.select(*columns, "time_ns", "flops", "place")


def _pattern(parameters: str) -> re.Pattern[str]:
    """Return a pattern in which every `*` matches any size."""
    return re.compile(re.escape(parameters).replace(r"\*", r"\d+"))


def _size(gemm: Gemm) -> tuple[Any, ...]:
    return gemm.operation, gemm.dtypes, gemm.m, gemm.n, gemm.k, gemm.batch
