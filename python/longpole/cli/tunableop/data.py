"""The data of the answers of `longpole tunableop`."""

from __future__ import annotations

from typing import Annotated

import polars as pl

from longpole.bench.tunableop.check import Problem
from longpole.bench.tunableop.coverage import CoverageRow
from longpole.bench.tunableop.difference import DiffRow
from longpole.bench.tunableop.names import ProcessFile
from longpole.bench.tunableop.records import GemmRow
from longpole.bench.tunableop.tune import Failure
from longpole.words.data import Row


class Checked(Row):
    """The problems of a file."""

    problems: list[Problem]


class RecordedCoverage(Row):
    """How much of the recorded GEMMs is tuned."""

    n_gemms: int
    n_tuned: int
    n_wildcard: int
    """Number of GEMMs with only a wildcard row; they do not count as tuned."""
    share: float | None
    """Tuned fraction of the FLOPs."""
    wildcard_share: float | None
    """Fraction of the FLOPs with only a wildcard row."""
    rows: Annotated[pl.DataFrame, CoverageRow]


class ProcessFiles(Row):
    """The files that processes read and write."""

    rows: list[ProcessFile]


class VariableRow(Row):
    """An environment variable to set."""

    variable: str
    """Variable with its value, as `NAME=VALUE`."""
    meaning: str


class Variables(Row):
    """The variables of a phase."""

    rows: list[VariableRow]


class EditedRow(Row):
    """A written file."""

    file: str
    validators: str
    gemms: int
    """Number of GEMMs in the file."""
    flops: int
    """Floating-point operations of one call of each GEMM."""
    dropped: int
    """Number of rows dropped for another row of the same GEMM."""
    conflicts: int
    """Number of GEMMs for which the sources have different solutions."""


class KeyRow(Row):
    """A GEMM, by its signatures."""

    operator: str
    parameters: str


class Edited(Row):
    """The written files."""

    changed: list[KeyRow]
    """GEMMs whose solution was changed or removed."""
    conflicts: list[str]
    """GEMMs for which the sources have different solutions, the chosen one first."""
    rows: list[EditedRow]


class Shown(Row):
    """The rows of a file."""

    rows: Annotated[pl.DataFrame, GemmRow]


class Differences(Row):
    """What differs in another file, and how much faster its solutions are."""

    geometric_mean: float | None
    """Geometric mean of the speedups of all GEMMs with a time in both files."""
    of_one_call_each: float | None
    """Speedup of all of them together if each is called once."""
    n_timed: int
    """Number of GEMMs with a time in both files."""
    n_not_default: int
    """Number of these whose solution in the first file is not torch's default."""
    same_validators: bool
    """Whether torch accepts either both files or neither."""
    rows: Annotated[pl.DataFrame, DiffRow]


class Tuned(Row):
    """The results of tuning."""

    outputs: list[str]
    """Output file of each GPU."""
    n_gemms: int
    n_tuned: int
    rows: list[Failure]
    """GEMMs that could not be tuned."""


class UntunedRow(KeyRow):
    """A recorded GEMM; sizes are as in BLAS."""

    m: int | None
    n: int | None
    k: int | None
    batch: int | None


class Recorded(Row):
    """Recorded GEMMs, without duplicates."""

    rows: Annotated[pl.DataFrame, UntunedRow]
