"""Compares two results files by row: the differences, and the gain over the default."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import TYPE_CHECKING, Literal

from longpole.bench.tunableop.records import Line, Source, read
from longpole.data import Row
from longpole.frames import frame_schema

if TYPE_CHECKING:
    import polars as pl

    from longpole.bench.tunableop.signature import Key

__all__ = ["DiffRow", "Speedup", "SpeedupRow", "diff", "loaded", "speedup"]


class DiffRow(Row):
    """A GEMM that differs; null on a side without a row for it."""

    change: Literal["added", "removed", "solution", "time"]
    """Kind of difference; `time` for the same solution."""
    operator: str
    parameters: str
    line_before: int | None
    solution_before: str | None
    time_ns_before: float | None
    line_after: int | None
    solution_after: str | None
    time_ns_after: float | None
    ratio: float | None
    """New time divided by the old one."""


class SpeedupRow(Row):
    """A GEMM with a time on both sides."""

    operator: str
    parameters: str
    solution: str
    time_ns: float
    baseline_ns: float
    speedup: float
    gain_ns: float


def loaded(source: Source) -> dict[Key, Line]:
    r"""Return the row that torch uses for each GEMM: the first one in the file.

    Examples
    --------
    >>> text = b"GemmTunableOp_float_NN,nn_1_2_3,Default,0.5\n" * 2
    >>> [line.line for line in loaded(text).values()]
    [1]
    """
    rows: dict[Key, Line] = {}
    for line in read(source).lines:
        if line.solution is not None:
            rows.setdefault(line.key, line)
    return rows


def diff(before: Source, after: Source) -> pl.DataFrame:
    r"""Compare the rows that torch uses from two results files.

    Returns
    -------
    DataFrame
        A `DiffRow` for each GEMM that differs, in the order of the signatures.

    Examples
    --------
    >>> old = b"GemmTunableOp_float_NN,nn_1_2_3,Default,0.5\n"
    >>> new = b"GemmTunableOp_float_NN,nn_1_2_3,Gemm_Rocblas_7,0.25\n"
    >>> diff(old, new).select("change", "solution_after", "ratio").rows()
    [('solution', 'Gemm_Rocblas_7', 0.5)]
    """
    import polars as pl

    old, new = loaded(before), loaded(after)
    rows = [
        (change, *key, *_side(old.get(key)), *_side(new.get(key)), None)
        for key in sorted(old.keys() | new.keys())
        if (change := _change(old.get(key), new.get(key)))
    ]
    frame = pl.DataFrame(rows, schema=frame_schema(DiffRow), orient="row")
    return frame.with_columns(ratio=pl.col("time_ns_after") / pl.col("time_ns_before"))


@dataclass(frozen=True, slots=True)
class Speedup:
    """The gain from tuning over a baseline, by the times in the files."""

    rows: pl.DataFrame
    """A `SpeedupRow` for each GEMM with a time in both files, largest gain first."""
    n_unmatched: int
    """Number of tuned GEMMs without a time in one of the files."""
    n_not_default: int
    """Number of rows of the baseline that were not measured with `Default`."""

    @property
    def geometric_mean(self) -> float | None:
        """Mean of the ratios, with each GEMM counted once; None without any."""
        ratios = self.rows["speedup"].to_list()
        return exp(sum(map(log, ratios)) / len(ratios)) if ratios else None

    @property
    def of_one_call_each(self) -> float | None:
        """Speedup of all of them together if each is called once; None without any."""
        time_ns = sum(self.rows["time_ns"].to_list())
        return sum(self.rows["baseline_ns"].to_list()) / time_ns if time_ns else None


def speedup(tuned: Source, baseline: Source) -> Speedup:
    r"""Compare a results file with one measured with the solution `Default`.

    Parameters
    ----------
    tuned
        The results of tuning.
    baseline
        The same GEMMs with their times under `Default`. Rows of other solutions are used too, and
        counted.

    Examples
    --------
    >>> tuned = b"GemmTunableOp_float_NN,nn_1_2_3,Gemm_Rocblas_7,0.25\n"
    >>> gained = speedup(tuned, b"GemmTunableOp_float_NN,nn_1_2_3,Default,0.5\n")
    >>> gained.geometric_mean, gained.n_not_default
    (2.0, 0)
    """
    import polars as pl

    after, before = loaded(tuned), loaded(baseline)
    pairs = {
        key: (line, before[key])
        for key, line in after.items()
        if line.time_ns and key in before and before[key].time_ns
    }
    rows = [
        (*key, line.solution, line.time_ns, base.time_ns, None, None)
        for key, (line, base) in pairs.items()
    ]
    frame = pl.DataFrame(rows, schema=frame_schema(SpeedupRow), orient="row")
    gains = frame.with_columns(
        speedup=pl.col("baseline_ns") / pl.col("time_ns"),
        gain_ns=pl.col("baseline_ns") - pl.col("time_ns"),
    )
    return Speedup(
        gains.sort("gain_ns", "operator", "parameters", descending=[True, False, False]),
        len(after) - len(pairs),
        sum(base.family != "default" for _, base in pairs.values()),
    )


def _change(
    old: Line | None, new: Line | None
) -> Literal["added", "removed", "solution", "time"] | None:
    if old is None or new is None:
        return "added" if old is None else "removed"
    if old.solution != new.solution:
        return "solution"
    return "time" if old.time_ns != new.time_ns else None


def _side(line: Line | None) -> tuple[int | None, str | None, float | None]:
    return (None, None, None) if line is None else (line.line, line.solution, line.time_ns)
