"""Table `operators`: time of each operator on its thread and on devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.engine.windows import window_of
from longpole.flops.inputs import INPUT_ARGUMENTS, shapes_in_words, typed_inputs
from longpole.tables.catalogue import table
from longpole.tables.frame_times import FrameTimes, host_limits, no_rows, with_graphs, with_shares
from longpole.tables.operator_work import shapes_hint
from longpole.trace.graph_contexts import graph_context_times

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_CATEGORIES: Final = ("cpu_op", "Operator")
_INPUTS: Final = ("shapes", "strides", "dtypes")
_NO_SHAPES: Final = "Shapes of inputs were not recorded"


@table(FrameTimes, needs_arguments=True)
def operators(
    trace: Trace,
    window: Window | None = None,
    *,
    shapes: bool = False,
    where: pl.Expr | str | None = None,
    sort: str | None = None,
    top: int = 20,
) -> FrameTimes:
    """Measure the time of operators by name, most time first.

    Sorted by device time, or by host time if the host limits the window.

    With `shapes` there are the columns `shapes`, `strides` and `dtypes`, as in `Trace.inputs`. Here
    `self_ns` is the time in which nothing ran inside the operator, including runtime API calls.
    `device_self_ns` of all rows sums to the time of all GPU activities. An operator of a backward
    pass has a row of its own; its time is also in the `backward_ns` of the forward operators around
    the one that it differentiates, found by the sequence number. Kernels of CUDA graphs count for
    the operators that captured them, if their capture is known.

    Parameters
    ----------
    shapes
        Whether to list each combination of input shapes and types in a row of its own.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().operator("aten::linear", (0, 40)).operator("aten::addmm", (5, 30))
    >>> trace = builder.launch("gemm", call=(10, 12), work=(20, 60)).read()
    >>> operators(trace).rows.select("name", "device_self_ns", "device_ns").rows()[:2]
    [('aten::addmm', 40000, 40000), ('aten::linear', 0, 40000)]
    """
    window = window_of(trace, window)
    if window is None:
        return FrameTimes("operator", no_rows(), 0, top)
    times = graph_context_times(trace, window, "operator", by_inputs=shapes, where=where)
    tree = _with_inputs(trace, times.tree) if shapes else times.tree
    key = ["name", *_INPUTS] if shapes else ["name"]
    rows = _grouped(tree, key)
    if shapes:
        rows = rows.sort(shapes_in_words())
    own = pl.col("device_self_ns")
    hint = shapes_hint(trace, _NO_SHAPES) if shapes and not rows["shapes"].count() else None
    by_host = host_limits(trace, window)
    shared = with_shares(rows, times, own, by_host=by_host)
    found = FrameTimes("operator", *shared, top, hint, by_host=by_host)
    return with_graphs(found, trace).sorted_by(sort)


def _with_inputs(trace: Trace, tree: pl.DataFrame) -> pl.DataFrame:
    """Read the inputs of the first operator of each chain; the others have the same."""
    firsts = tree.select("source", event="first").unique().partition_by("source", as_dict=True)
    inputs = [typed_inputs(None).with_columns(source=pl.lit(0, pl.UInt32))]
    for (source,), first in firsts.items():
        of_source = trace if source == 0 else trace.capture_traces[source - 1]
        tables = [of_source.args(category, INPUT_ARGUMENTS) for category in _CATEGORIES]
        asked = [table.join(first, on="event", how="semi") for table in tables if table is not None]
        inputs += [
            typed_inputs(table).with_columns(source=pl.lit(source, pl.UInt32)) for table in asked
        ]
    described = pl.concat(inputs).select("source", *_INPUTS, first="event")
    return tree.join(described, on=["source", "first"], how="left", maintain_order="left")


def _grouped(tree: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """Sum the chains that end with the same operator; in totals, only outermost ones count."""
    named = tree.filter(pl.any_horizontal(pl.col("count", "n_activities", "backward_ns") > 0))
    outermost = pl.col("is_outermost")
    return (
        named.with_columns(pl.col("name").cast(pl.String))
        .group_by(key, maintain_order=True)
        .agg(
            pl.col("count").sum(),
            self_ns=pl.col("own_ns").sum(),
            total_ns=pl.col("total_ns").filter(outermost).sum(),
            n_activities=pl.col("n_activities").filter(outermost).sum(),
            device_self_ns=pl.col("device_self_ns").sum(),
            device_ns=pl.col("device_ns").filter(outermost).sum(),
            backward_ns=pl.col("backward_ns").filter(outermost).sum(),
        )
    )
