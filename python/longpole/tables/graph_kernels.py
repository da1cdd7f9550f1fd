"""Table `graph_kernels`: kernels of CUDA graphs, by the captured operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import polars as pl

from longpole.engine.windows import window_of
from longpole.rows.selection import matching
from longpole.tables.activities import own_activities
from longpole.tables.catalogue import table
from longpole.tables.needs import ACTIVITIES, GRAPHS
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_KEYS: Final = ("operator_name", "annotation", "kind", "name")


class GraphKernelRow(Row):
    """All GPU activities of CUDA graphs with the same operator and name."""

    operator_name: str | None
    """Innermost operator around the captured call; null if unknown."""
    annotation: str | None
    """Annotation that `torch.cuda.graph_annotations` recorded for the node, if any."""
    kind: str
    name: str
    count: int
    duration_ns: int
    """Time inside the window."""
    joined_by: Literal["node_id", "order"] | None
    """How node and captured call were joined; null if the capture is not known."""


@table(
    GraphKernelRow,
    needs_arguments=True,
    needs=(ACTIVITIES, GRAPHS),
    empty="No CUDA graph ran in it.",
)
def graph_kernels(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """Rank the GPU activities of CUDA graphs by captured operator.

    The operators come from a trace of the capture: `read_trace(path, capture_traces=[...])`, or the
    trace itself if it contains the capture.

    Parameters
    ----------
    where
        A condition on the columns of `activities` and `Trace.graph_nodes`, such as
        `"annotation = 'attention'"`.

    Returns
    -------
    DataFrame
        A row for each operator and name, those with most time first.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().launch("gemm", call=(0, 5), work=(8, 20), by="cudaGraphLaunch")
    >>> graph_kernels(builder.read()).select("operator_name", "name", "duration_ns").row(0)
    (None, 'gemm', 12000)
    """
    window = window_of(trace, window)
    found = own_activities(trace, window).drop("operator_name").join(trace.graph_nodes, on="event")
    found = matching(found, where)
    return (
        found.with_columns(pl.col("kind", "name").cast(pl.String))
        .group_by(*_KEYS, "joined_by")
        .agg(count=pl.len().cast(pl.Int64), duration_ns=pl.col("inside_ns").sum())
        .sort("duration_ns", *_KEYS, descending=[True, *(False for _ in _KEYS)])
        .select(*_KEYS, "count", "duration_ns", "joined_by")
    )
