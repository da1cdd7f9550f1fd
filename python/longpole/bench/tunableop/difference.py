"""Compares two results files by row: the differences, and the gain over the default."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import TYPE_CHECKING, Literal

from longpole.bench.tunableop.parts import names_at, outline_of
from longpole.bench.tunableop.records import Line, Source, read
from longpole.rows.frames import frame_schema
from longpole.words.data import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from longpole.bench.tunableop.inputs import Key


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
    gain_ns: float | None
    """Old time minus the new one."""


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

    texts, old, new = _outlines(before, after)
    pairs = old.join(new, on="gemm", how="full", coalesce=True, suffix="_after")
    is_same = pl.col("solution") == pl.col("solution_after")
    change = (
        pl.when(pl.col("solution").is_null())
        .then(pl.lit("added"))
        .when(pl.col("solution_after").is_null())
        .then(pl.lit("removed"))
        .when(~is_same)
        .then(pl.lit("solution"))
        .when(pl.col("time_ns").ne_missing(pl.col("time_ns_after")))
        .then(pl.lit("time"))
    )
    differing = (
        pairs.with_columns(change=change)
        .drop_nulls("change")
        .sort(pl.min_horizontal("place", "place_after"))
    )
    names = [names_at(texts, _side(differing, suffix)) for suffix in ("", "_after")]
    frame = pl.DataFrame(
        [
            differing["change"],
            *(names[0][name].fill_null(names[1][name]) for name in ("operator", "parameters")),
            *_outcome(differing, "", names[0], "before"),
            *_outcome(differing, "_after", names[1], "after"),
        ]
    )
    old_ns, new_ns = pl.col("time_ns_before"), pl.col("time_ns_after")
    rows = frame.with_columns(ratio=new_ns / old_ns, gain_ns=old_ns - new_ns)
    return rows.cast(frame_schema(DiffRow))


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

    texts, base, after = _outlines(baseline, tuned)
    pairs = (
        after.join(base, on="gemm", suffix="_base")
        .drop_nulls(["time_ns", "time_ns_base"])
        .with_columns(
            speedup=pl.col("time_ns_base") / pl.col("time_ns"),
            gain_ns=pl.col("time_ns_base") - pl.col("time_ns"),
        )
        .sort("gain_ns", "place", descending=[True, False])
    )
    rows = pairs.select(
        "time_ns", pl.col("time_ns_base").alias("baseline_ns"), "speedup", "gain_ns"
    )
    return Speedup(
        names_at(texts, pairs).hstack(rows),
        after.height - pairs.height,
        int((pairs["family_base"] != "default").sum()),
    )


def _outlines(first: Source, second: Source) -> tuple[list[bytes], pl.DataFrame, pl.DataFrame]:
    """Return the texts of two files, and the row that torch uses for each GEMM of them."""
    import polars as pl

    texts = [read(source).text for source in (first, second)]
    columns = ("line", "offset", "length", "solution", "family", "time_ns", "place")
    results = (
        outline_of(texts, place=True)
        .filter(pl.col("kind") == "result")
        .select("file", "gemm", *columns)
        .unique(["file", "gemm"], keep="first", maintain_order=True)
    )
    return texts, results.filter(pl.col("file") == 0), results.filter(pl.col("file") == 1)


def _side(rows: pl.DataFrame, suffix: str) -> pl.DataFrame:
    """Return the columns of one side under the names of an outline."""
    columns = ("file", "offset", "length", "solution")
    return rows.select(rows[name + suffix].alias(name) for name in columns)


def _outcome(
    rows: pl.DataFrame, suffix: str, names: pl.DataFrame, side: str
) -> Iterator[pl.Series]:
    yield rows["line" + suffix].alias(f"line_{side}")
    yield names["solution"].alias(f"solution_{side}")
    yield rows["time_ns" + suffix].alias(f"time_ns_{side}")
