"""What the commands of `longpole tunableop` answer, as programs read it."""

from __future__ import annotations

from typing import Annotated

import polars as pl

from longpole.analyses.execution_coverage import ExecutionCoverage
from longpole.analyses.gemm_coverage import GemmCoverage
from longpole.bench.tunableop.coverage import CoverageRow
from longpole.bench.tunableop.difference import DiffRow, SpeedupRow
from longpole.bench.tunableop.names import ProcessFile
from longpole.bench.tunableop.problems import Problem
from longpole.bench.tunableop.records import GemmRow
from longpole.bench.tunableop.tune import Failure
from longpole.data import Row

__all__ = [
    "Changed",
    "Checked",
    "Coverage",
    "Differences",
    "Files",
    "KeyRow",
    "MergedFiles",
    "MergedRow",
    "PartRow",
    "RecordedCoverage",
    "Shown",
    "Speedups",
    "Split",
    "Tuned",
    "Untuned",
    "UntunedRow",
    "VariableRow",
    "Variables",
]


class Checked(Row):
    """What is wrong with a file."""

    problems: list[Problem]


class RecordedCoverage(Row):
    """How much of the recorded GEMMs is tuned."""

    n_gemms: int
    n_tuned: int
    n_wildcard: int
    """How many have only a row with wildcards; they do not count as tuned."""
    share: float | None
    """The share of the tuned ones, by operations."""
    wildcard_share: float | None
    """The share of those with only a row with wildcards, by operations."""
    rows: Annotated[pl.DataFrame, CoverageRow]


Coverage = RecordedCoverage | GemmCoverage | ExecutionCoverage


class Differences(Row):
    """What differs between two files."""

    rows: Annotated[pl.DataFrame, DiffRow]


class VariableRow(Row):
    """A variable of the environment, to be set."""

    variable: str
    """With its value, as `NAME=VALUE`."""
    meaning: str


class Variables(Row):
    """What to set in a phase."""

    rows: list[VariableRow]


class Files(Row):
    """Which files processes read and write."""

    rows: list[ProcessFile]


class MergedRow(Row):
    """A file that was written."""

    file: str
    validators: str
    gemms: int
    """How many it has."""
    dropped: int
    """How many rows lost to another row of the same GEMM."""
    conflicts: int
    """For how many GEMMs the sources name different solutions."""


class MergedFiles(Row):
    """What was joined."""

    conflicts: list[str]
    """The GEMMs for which the sources name different solutions, the chosen one first."""
    rows: list[MergedRow]


class KeyRow(Row):
    """A GEMM, by its signatures."""

    operator: str
    parameters: str


class Changed(Row):
    """Which rows were edited."""

    rows: list[KeyRow]


class Shown(Row):
    """The rows of a file."""

    rows: Annotated[pl.DataFrame, GemmRow]


class Speedups(Row):
    """What tuning gained."""

    geometric_mean: float | None
    """Of the ratios, each GEMM counted once."""
    of_one_call_each: float | None
    """How much faster all of them together are when each is called once."""
    rows: Annotated[pl.DataFrame, SpeedupRow]


class PartRow(Row):
    """A part of a file."""

    file: str
    gemms: int
    flops: int


class Split(Row):
    """The parts that were written."""

    rows: list[PartRow]


class Tuned(Row):
    """What came of tuning."""

    outputs: list[str]
    """The file for each GPU."""
    n_gemms: int
    n_tuned: int
    rows: list[Failure]
    """The GEMMs that could not be tuned."""


class UntunedRow(KeyRow):
    """A recorded GEMM; sizes are as BLAS counts."""

    m: int | None
    n: int | None
    k: int | None
    batch: int | None


class Untuned(Row):
    """Recorded GEMMs, each once."""

    rows: Annotated[pl.DataFrame, UntunedRow]
