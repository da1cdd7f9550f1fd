"""Table `roofline` by counter: FLOPs and bytes of operators, counted and by formula."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.flops.inputs import shapes_in_words
from longpole.rows.frames import frame_schema
from longpole.tables.catalogue import view
from longpole.tables.counters import counters
from longpole.tables.needs import COUNTERS
from longpole.tables.operator_work import operators_with_work, outermost, whole_sum
from longpole.trace.counters import DRAM_BYTES, TENSOR_CORE_INSTRUCTIONS
from longpole.trace.sweeps import around
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_KEY: Final = ("name", "shapes", "dtypes")
_SUMS: Final = ("flops", "cuda_core_flops", "tensor_core_insts", "n_bytes", "dram_bytes")


class MeasuredWork(Row):
    """Counted and computed work of operators with the same inputs. Unknown values are null.

    Without a formula: the work of one innermost operator and kernel name.
    """

    name: str | None
    """Name of the operator; null if the launching operator is not known."""
    shapes: list[list[int] | None] | None
    dtypes: list[str] | None
    kernel: str
    """First kernel, by name."""
    calls: int
    n_kernels: int
    flops: int | None
    """FLOPs by the formula of the operator."""
    cuda_core_flops: int | None
    """FLOPs measured by hardware counters."""
    tensor_core_insts: int | None
    """Tensor core instructions measured by hardware counters."""
    of_flops: float | None
    """Counted FLOPs divided by `flops`."""
    n_bytes: int | None
    """Bytes by the formula of the operator."""
    dram_bytes: int | None
    """DRAM bytes measured by hardware counters."""
    of_bytes: float | None
    """Counted bytes divided by those of the formula; above 1 if data moved more than once."""


@view(
    MeasuredWork,
    needs_arguments=True,
    needs=(COUNTERS,),
    empty="No kernel with counters was launched in it.",
)
def measured_work(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """Compare the counters of operators with the FLOPs and bytes computed from their inputs.

    CUDA core counters do not include the work of tensor cores, and a tensor core instruction is not
    a fixed number of FLOPs. So `of_flops` is null unless the trace counts tensor core instructions
    and there were none.

    Parameters
    ----------
    window
        As in `counters`.
    where
        A condition on the columns of `counters`.

    Returns
    -------
    DataFrame
        Rows of `MeasuredWork`.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> inputs = {"Input Dims": [[8], [8], []], "Input type": ["float", "float", "Scalar"]}
    >>> builder = TraceBuilder().operator("aten::add", (0, 20), **inputs)
    >>> counted = {"kineto__cuda_core_flops": 16, "kineto__tensor_core_insts": 0}
    >>> trace = builder.call("cudaLaunchKernel", (5, 9)).event(
    ...     ph="X", cat="cuda_profiler_range", name="add", pid=0, tid=0, ts=0, dur=9, args=counted
    ... ).read()
    >>> measured_work(trace).select("name", "flops", "cuda_core_flops", "of_flops").row(0)
    ('aten::add', 8, 16, 2.0)
    """
    counted = counters(trace, window, where=where)
    if counted.is_empty():
        return pl.DataFrame(schema=frame_schema(MeasuredWork))
    counted = counted.filter(pl.col("kernel_name").is_not_null())
    operators = operators_with_work(trace)
    owners = outermost(trace, counted["call"], pl.Series(operators["operator"], dtype=pl.UInt32))
    kernel = pl.col("kernel_name").cast(pl.String)
    rows = counted.select(
        kernel=kernel,
        operator=owners.fill_null(_innermost(trace, counted["call"])),
        other=pl.when(owners.is_null()).then(kernel),
        cuda_core_flops="flops",
        tensor_core_insts=_counter(counted, [TENSOR_CORE_INSTRUCTIONS]),
        dram_bytes=_counter(counted, DRAM_BYTES),
    )
    of_call = rows.group_by("operator", "other", maintain_order=True).agg(
        pl.col("kernel").min(),
        pl.len().cast(pl.Int64).alias("n_kernels"),
        *(sum_of_known(name) for name in _SUMS if name in rows.columns),
    )
    joined = of_call.join(operators, on="operator", how="left", maintain_order="left")
    # The number of an event is its row in `events`.
    called = trace.events["name"].gather(joined["operator"]).cast(pl.String)
    return _shares(joined.with_columns(name=called))


def _innermost(trace: Trace, calls: pl.Series) -> pl.Series:
    """Find the operator that made each call."""
    operators = trace.events.filter(pl.col("kind") == "operator")["event"]
    return around(trace, calls, operators, "innermost")


def _shares(calls: pl.DataFrame) -> pl.DataFrame:
    """Group the calls of operators with the same inputs, and compare."""
    grouped = calls.group_by(*_KEY, "other", maintain_order=True).agg(
        pl.col("kernel").min(),
        pl.col("n_kernels").sum(),
        *map(sum_of_known, _SUMS),
        calls=pl.when(pl.col("name").count() > 0).then(pl.col("operator").n_unique()),
    )
    is_on_cuda_cores = pl.col("tensor_core_insts") == 0
    compared = pl.when(is_on_cuda_cores).then(_ratio("cuda_core_flops", "flops"))
    return (
        grouped.with_columns(of_flops=compared, of_bytes=_ratio("dram_bytes", "n_bytes"))
        .sort(-pl.col("flops"), "name", shapes_in_words(), "kernel", nulls_last=True)
        .select(*(pl.col(name).cast(dtype) for name, dtype in frame_schema(MeasuredWork).items()))
    )


def _counter(counted: pl.DataFrame, names: list[str]) -> pl.Expr:
    """Sum counters if all of them were read."""
    if not set(names) <= set(counted.columns):
        return pl.lit(None, pl.Int64)
    return pl.sum_horizontal(*names, ignore_nulls=False)


def sum_of_known(name: str) -> pl.Expr:
    """Return the sum of a column; null if any value is unknown."""
    return pl.when(~pl.col(name).has_nulls()).then(whole_sum(pl.col(name))).alias(name)


def _ratio(measured: str, expected: str) -> pl.Expr:
    return pl.when(pl.col(expected) > 0).then(pl.col(measured) / pl.col(expected))
