"""The data of the answers of `longpole tunableop`."""

from __future__ import annotations

from typing import Annotated

import polars as pl

from longpole.bench.tunableop.check import Problem
from longpole.bench.tunableop.coverage import CoverageRow
from longpole.bench.tunableop.difference import SpeedupRow
from longpole.bench.tunableop.tune import Failure
from longpole.words.data import Row

__all__ = [
    "Checked",
    "KeyRow",
    "MergedFiles",
    "MergedRow",
    "PartRow",
    "RecordedCoverage",
    "Speedups",
    "Tuned",
    "UntunedRow",
    "VariableRow",
]


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


class VariableRow(Row):
    """An environment variable to set."""

    variable: str
    """Variable with its value, as `NAME=VALUE`."""
    meaning: str


class MergedRow(Row):
    """A written file."""

    file: str
    validators: str
    gemms: int
    """Number of GEMMs in the file."""
    dropped: int
    """Number of rows dropped for another row of the same GEMM."""
    conflicts: int
    """Number of GEMMs for which the sources have different solutions."""


class MergedFiles(Row):
    """The merged files."""

    conflicts: list[str]
    """GEMMs for which the sources have different solutions, the chosen one first."""
    rows: list[MergedRow]


class KeyRow(Row):
    """A GEMM, by its signatures."""

    operator: str
    parameters: str


class Speedups(Row):
    """The gain from tuning."""

    geometric_mean: float | None
    """Geometric mean of the ratios, with each GEMM counted once."""
    of_one_call_each: float | None
    """Speedup of all of them together if each is called once."""
    rows: Annotated[pl.DataFrame, SpeedupRow]


class PartRow(Row):
    """A part of a file."""

    file: str
    gemms: int
    flops: int


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
