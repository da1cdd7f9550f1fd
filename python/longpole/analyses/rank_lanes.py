"""Swim lanes of the critical path across ranks: the whole path, then each rank on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.analyses.lanes import Layout, longest, longest_segments
from longpole.report.page import Lanes
from longpole.windows import Window

if TYPE_CHECKING:
    import polars as pl

    from longpole.traces.trace_set import TraceSet

__all__ = ["rank_lanes"]

_MOST_RANKS: Final = 24
_COLORS: Final = {
    "critical path": "path",
    "kernel": "kernel",
    "transfer": "communication",
    "communication": "communication",
    "copy": "copy",
    "operator": "operator",
    "runtime": "runtime",
    "data loading": "python",
}
"""Other kinds are drawn in the colour of annotations."""


def rank_lanes(
    traces: TraceSet, path: pl.DataFrame | None = None, step: int | None = None
) -> tuple[Lanes, int] | None:
    """Lay out the path across ranks, and count the segments that are too short to be drawn.

    Parameters
    ----------
    traces
        From `read_traces`.
    path
        From `TraceSet.path`, if it is there already.
    step
        The number of a step; by default the whole run.

    Returns
    -------
    tuple of Lanes and int, or None
        None where there is no path.
    """
    import polars as pl

    path = traces.path(step) if path is None else path
    start_ns, end_ns = traces.window(step)
    if path.is_empty() or end_ns <= start_ns:
        return None
    kind = pl.col("kind").cast(pl.String).str.replace_all("_", " ")
    path = path.with_columns(kind=kind, name=pl.coalesce(pl.col("name").cast(pl.String), kind))
    n_segments, path = path.height, longest(path)
    layout = Layout(Window("trace", None, start_ns, end_ns, "the path across ranks"))
    layout.add("critical path", path, is_path=True)
    on_path = path.group_by("rank").agg(pl.col("duration_ns").sum())
    most = on_path.sort("duration_ns", "rank", descending=[True, False]).head(_MOST_RANKS)
    for rank in most["rank"].sort():
        layout.add(f"rank {rank}", path.filter(pl.col("rank") == rank))
    colors = {kind: _COLORS.get(kind, "annotation") for kind in layout.kinds}
    label = "The critical path across ranks; use the buttons to walk along it."
    drawn = Lanes(
        end_ns - start_ns,
        layout.names,
        layout.kinds,
        colors,
        layout.rows,
        label,
        longest_segments(layout),
    )
    return drawn, n_segments - path.height
