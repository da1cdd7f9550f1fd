"""Coverage of the matrix products of an execution trace by a TunableOp file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import polars as pl

from longpole.bench.tunableop.coverage import ProductRow, Tuned
from longpole.bench.tunableop.inputs import recorded
from longpole.bench.tunableop.matmul import NOT_TUNABLE, PRODUCTS
from longpole.words.data import Data, computed

if TYPE_CHECKING:
    from longpole.bench.tunableop.records import Source
    from longpole.formats.convert.execution_trace import ExecutionTrace

_TUNED = pl.col("match") == "tuned"
_INPUTS = ("input_shapes", "input_strides", "input_types", "input_values")


class ExecutionCoverageRow(ProductRow):
    """A distinct GEMM of an execution trace, with its entry in the results file."""

    flops: int | None
    """FLOPs of all calls; null if the inputs do not determine them."""
    share_of_flops: float | None


@dataclass(frozen=True, slots=True)
class ExecutionCoverage(Data):
    """How much of the work in matrix products a results file covers, without times."""

    rows: Annotated[pl.DataFrame, ExecutionCoverageRow]
    """GEMMs to tune come first."""

    @computed
    def n_calls(self) -> int:
        """Number of calls of matrix products."""
        return int(self.rows["calls"].sum())

    @computed
    def n_tuned_calls(self) -> int:
        """Number of calls that are certain to be tuned."""
        return int(self.rows.filter(_TUNED)["calls"].sum())

    @computed
    def share_of_flops(self) -> float | None:
        """Tuned fraction of the known FLOPs; None if none are known."""
        total = int(self.rows["flops"].sum())
        return int(self.rows.filter(_TUNED)["flops"].sum()) / total if total else None

    @computed
    def wildcard_share_of_flops(self) -> float | None:
        """Fraction of the FLOPs with only a wildcard row; None if none are known."""
        total = int(self.rows["flops"].sum())
        wildcard = int(self.rows.filter(pl.col("match") == "wildcard")["flops"].sum())
        return wildcard / total if total else None


def execution_coverage(execution: ExecutionTrace, results: Source) -> ExecutionCoverage:
    """Look the matrix products of an execution trace up in a results file.

    Parameters
    ----------
    execution
        The execution trace; it has no times, so products count by their FLOPs.
    results
        A results file, its path or its bytes.
    """
    name = pl.col("name").cast(pl.String)
    products = execution.nodes.filter(name.is_in([*PRODUCTS, *NOT_TUNABLE]))
    texts = products.select(name, pl.col(_INPUTS).cast(pl.String))
    calls = texts.group_by("name", *_INPUTS).agg(pl.len())
    tuned = Tuned(results)
    rows = []
    for name, *inputs, n_calls in calls.iter_rows():
        found = tuned.product(name, recorded(*inputs))
        told = (found.operator, found.parameters, found.kind, found.solution, found.flops)
        rows.append((name, *told, n_calls))
    texts_of = dict.fromkeys(("name", "operator", "parameters", "match", "solution"), pl.String)
    schema = {**texts_of, "flops_of_one": pl.Int64, "calls": pl.Int64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return ExecutionCoverage(_summed(frame))


def _summed(rows: pl.DataFrame) -> pl.DataFrame:
    """Sum the calls of each GEMM; GEMMs to tune come first."""
    keys = ("name", "operator", "parameters", "match", "solution")
    joined = rows.group_by(*keys).agg(
        pl.col("calls").sum(),
        # FLOPs of products with unknown inputs are null, not 0.
        flops=(pl.col("calls") * pl.col("flops_of_one")).sum().replace(0, None),
    )
    total = joined["flops"].sum() or 1
    return joined.with_columns(share_of_flops=pl.col("flops") / total).sort(
        _TUNED, "flops", *keys, descending=[False, True, *[False] * 5], nulls_last=True
    )
