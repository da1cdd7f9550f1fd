"""Coverage of the GEMMs of a trace by a TunableOp file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

import polars as pl

from longpole.bench.tunableop.coverage import ProductRow, Tuned
from longpole.bench.tunableop.inputs import recorded
from longpole.bench.tunableop.matmul import NOT_TUNABLE, PRODUCTS
from longpole.engine.windows import Window, choose_window
from longpole.words.data import HIDDEN, Data, computed

if TYPE_CHECKING:
    import os

    from longpole.bench.tunableop.records import Source
    from longpole.formats.convert.execution_trace import ExecutionTrace
    from longpole.trace.trace import Trace

_TUNED = pl.col("match") == "tuned"
_INPUTS = ("shapes", "strides", "types", "values")


class GemmCoverageRow(ProductRow):
    """A distinct GEMM of a trace, with its entry in the results file."""

    kernel_ns: int
    """Time of its kernels in the window."""
    path_ns: int
    """Part of `kernel_ns` on the critical path: upper bound of the gain from tuning this GEMM."""
    mean_ns: float
    """Mean kernel time per call."""
    tuned_ns: float | None
    """Time in the results file."""


@dataclass(frozen=True, slots=True)
class GemmCoverage(Data):
    """How much of the GEMM time, and of the critical path, a results file covers."""

    window: Window = field(metadata=HIDDEN)
    rows: Annotated[pl.DataFrame, GemmCoverageRow]
    """GEMMs to tune come first, then the tuned ones."""
    path_length_ns: int
    path_status: Literal["ok", "inconclusive"]

    @computed
    def gemm_ns(self) -> int:
        """Time of all kernels that GEMMs launched."""
        return sum(self.rows["kernel_ns"].to_list())

    @computed
    def tuned_ns(self) -> int:
        """Part of `gemm_ns` that is certain to be tuned."""
        return sum(self.rows.filter(_TUNED)["kernel_ns"].to_list())

    @computed
    def gemm_path_ns(self) -> int:
        """Time of GEMM kernels on the critical path."""
        return sum(self.rows["path_ns"].to_list())

    @computed
    def tuned_path_ns(self) -> int:
        """Part of `gemm_path_ns` that is certain to be tuned."""
        return sum(self.rows.filter(_TUNED)["path_ns"].to_list())

    @computed
    def share_of_gemm_time(self) -> float | None:
        """Tuned fraction of the GEMM time; None without GEMM time."""
        return self.tuned_ns / self.gemm_ns if self.gemm_ns else None

    @computed
    def share_of_path(self) -> float | None:
        """Fraction of the critical path in tuned GEMMs; None for an empty path."""
        return self.tuned_path_ns / self.path_length_ns if self.path_length_ns else None

    @computed
    def wildcard_share_of_gemm_time(self) -> float | None:
        """Fraction of the GEMM time with only a wildcard row; None without GEMM time."""
        wildcard_ns = int(self.rows.filter(pl.col("match") == "wildcard")["kernel_ns"].sum())
        return wildcard_ns / self.gemm_ns if self.gemm_ns else None

    @property
    def to_tune(self) -> pl.DataFrame:
        """Rows that are not tuned but can be, largest bound first."""
        return self.rows.filter(~_TUNED, pl.col("match") != "not_tunable")


def gemm_coverage(
    trace: Trace,
    results: Source,
    *,
    step: int | None = None,
    execution: ExecutionTrace | str | os.PathLike[str] | None = None,
) -> GemmCoverage | None:
    """Look the GEMMs of a trace up in a results file.

    A GEMM is a matrix product of torch with all kernels it launched, including split reductions and
    type conversions. Its TunableOp name is derived from the shapes, strides and types of its
    inputs, which are recorded with `record_shapes=True`.

    Parameters
    ----------
    trace
        A Kineto trace, read with the arguments of its operators.
    results
        A results file, its path or its bytes.
    step
        Number of a step; by default the step of `summary`, or the whole trace.
    execution
        The execution trace of the same run, for the inputs of operators that were recorded without
        shapes.

    Returns
    -------
    GemmCoverage or None
        None if nothing in the trace has a duration.

    Raises
    ------
    ValueError
        The step does not exist.
    PairError
        The execution trace belongs to another run.
    """
    window = choose_window(trace, step)
    if window is None:
        return None
    path = trace.critical_path(step=window.step)
    kernels = _kernels(trace, window)
    segments = path.segments.filter(pl.col("kind").cast(pl.String) == "kernel")
    on_path = segments.group_by("event").agg(path_ns=pl.col("duration_ns").sum())
    timed = kernels.join(on_path, on="event", how="left").with_columns(
        pl.col("path_ns").fill_null(0)
    )
    calls = timed.group_by("operator").agg(pl.col("duration_ns", "path_ns").sum())
    inputs = _inputs(trace)
    if execution is not None:
        inputs = _first_known(inputs, _inputs_elsewhere(trace, window, execution))
    rows = _rows(_named(trace, calls, inputs), Tuned(results))
    return GemmCoverage(window, rows, path.length_ns, path.status)


def _kernels(trace: Trace, window: Window) -> pl.DataFrame:
    """Return the kernels in the window that products launched: `event`, `operator`, time."""
    products = trace.events.filter(
        pl.col("name").cast(pl.String).is_in([*PRODUCTS, *NOT_TUNABLE])
    ).select(operator="event")
    launched = trace.launches.select("event", "operator").join(products, on="operator", how="semi")
    kernels = trace.events.filter(
        pl.col("kind").cast(pl.String) == "kernel",
        pl.col("start_ns") >= window.start_ns,
        pl.col("start_ns") < window.end_ns,
        pl.col("duration_ns") >= 0,
    )
    return kernels.select("event", "duration_ns").join(launched, on="event")


def _inputs(trace: Trace) -> pl.DataFrame:
    """Return the operator arguments in the trace, by the row of the operator."""
    columns = ("Input Dims", "Input Strides", "Input type", "Concrete Inputs")
    arguments = trace.args("cpu_op")
    if arguments is None:
        return pl.DataFrame(schema={"operator": pl.UInt32, **dict.fromkeys(_INPUTS, pl.String)})
    texts = [
        (
            pl.col(column).cast(pl.String)
            if column in arguments.columns
            else pl.lit(None, pl.String)
        ).alias(name)
        for name, column in zip(_INPUTS, columns, strict=True)
    ]
    return arguments.select(pl.col("event").alias("operator"), *texts)


def _inputs_elsewhere(
    trace: Trace, window: Window, execution: ExecutionTrace | str | os.PathLike[str]
) -> pl.DataFrame:
    """Return the operator arguments in the execution trace, by the row of the operator."""
    from longpole.formats.convert.execution_trace import (
        ExecutionTrace,
        link_execution_trace,
        read_execution_trace,
    )

    if not isinstance(execution, ExecutionTrace):
        execution = read_execution_trace(execution)
    linked = link_execution_trace(execution, trace)
    best = _iteration_within(linked.iterations, window)
    if best is not None:
        linked = link_execution_trace(execution, trace, iteration=best)
    found = linked.nodes.filter(pl.col("kind").cast(pl.String) == "operator").drop_nulls("event")
    nodes = execution.nodes.select(
        "node", *(pl.col(f"input_{name}").alias(name) for name in _INPUTS)
    )
    texts = nodes.with_columns(pl.col(_INPUTS).cast(pl.String))
    return (
        found.select("node", pl.col("event").alias("operator")).join(texts, on="node").drop("node")
    )


def _iteration_within(iterations: pl.DataFrame, window: Window) -> int | None:
    """Return the iteration that overlaps the window most; None if iterations are unknown."""
    start, end = pl.col("start_ns"), pl.col("start_ns") + pl.col("duration_ns")
    inside_ns = pl.min_horizontal(end, window.end_ns) - pl.max_horizontal(start, window.start_ns)
    order = iterations.sort(inside_ns, "iteration", descending=[True, False])
    return None if order.is_empty() else int(order["iteration"][0])


def _first_known(inputs: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Fill in the arguments of operators without shapes in `inputs` from `others`."""
    known = inputs.filter(pl.col("shapes").fill_null("").str.contains(r"\d"))
    missing = others.join(known, on="operator", how="anti")
    return pl.concat([known, missing.select(known.columns)])


def _named(trace: Trace, calls: pl.DataFrame, inputs: pl.DataFrame) -> pl.DataFrame:
    """Add names and inputs to the calls, and group equal calls."""
    names = trace.events.select(operator="event", name=pl.col("name").cast(pl.String))
    return (
        calls.join(names, on="operator")
        .join(inputs, on="operator", how="left")
        .group_by("name", *_INPUTS)
        .agg(pl.len().alias("calls"), pl.col("duration_ns", "path_ns").sum())
    )


def _rows(calls: pl.DataFrame, tuned: Tuned) -> pl.DataFrame:
    rows = []
    for name, *inputs, n_calls, kernel_ns, path_ns in calls.iter_rows():
        found = tuned.product(name, recorded(*inputs))
        told = (found.operator, found.parameters, found.kind, found.solution)
        rows.append((name, *told, n_calls, kernel_ns, path_ns, found.time_ns))
    texts = ("name", "operator", "parameters", "match", "solution")
    numbers = ("calls", "kernel_ns", "path_ns")
    schema = {**dict.fromkeys(texts, pl.String), **dict.fromkeys(numbers, pl.Int64)}
    frame = pl.DataFrame(rows, schema={**schema, "tuned_ns": pl.Float64}, orient="row")
    joined = frame.group_by(*texts, "tuned_ns").agg(pl.col(numbers).sum())
    mean_ns = pl.col("kernel_ns") / pl.col("calls")
    return (
        joined.with_columns(mean_ns=mean_ns)
        .select(*texts, *numbers, "mean_ns", "tuned_ns")
        .sort(
            _TUNED,
            "path_ns",
            "kernel_ns",
            "name",
            "operator",
            "parameters",
            descending=[False, True, True, False, False, False],
        )
    )
