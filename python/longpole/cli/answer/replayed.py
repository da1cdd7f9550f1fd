"""Warns if the replayed time of a graph differs from the time of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.report.document import Warned
from longpole.wording import duration

if TYPE_CHECKING:
    import polars as pl

    from longpole.convert.execution_trace import Deviation, Replay

__all__ = ["replay_warnings"]

_LARGEST_ERROR: Final = 0.05
"""Published error of graphs with these kinds of dependencies: 3.3 %."""


def replay_warnings(replay: Replay, nodes: pl.DataFrame, graph: str = "") -> list[Warned]:
    """Return how much time a replay misses and where, if it is more than a twentieth.

    `nodes` are those of the replayed graph, and `graph` is its name if there are several.
    """
    error, measured_ns, differs = replay.error, replay.measured_ns, replay.deviation
    if error is None or measured_ns is None or differs is None or abs(error) <= _LARGEST_ERROR:
        return []
    missing_ns = measured_ns - replay.makespan_ns
    times = f"{duration(replay.makespan_ns)} of the measured {duration(measured_ns)}"
    what = "missing" if missing_ns > 0 else "too long"
    told = f"{graph}: " if graph else ""
    return [
        Warned(
            code="replay_misses_the_run",
            count=1,
            message=f"{told}the replay takes {times} ({error:+.1%})",
            effect=f"simulators start from a graph in which {duration(abs(missing_ns))} are "
            f"{what}, {_place(differs, nodes)}",
            hint="the graph does not hold what was waited for there; take another iteration or "
            "record both files over the same whole iteration",
        )
    ]


def _place(differs: Deviation, nodes: pl.DataFrame) -> str:
    """Return the missing share of the time, and its thread or stream, next node and time."""
    node = nodes.row(differs.row, named=True)
    is_device = node["stream"] is not None and node.get("is_cpu_op") in (None, 0)
    thread = f"thread {node['thread']}" if "thread" in node else f"tid {node['tid']}"
    where = f"stream {node['stream']}" if is_device else thread
    return (
        f"{duration(abs(differs.missing_ns))} of them on {where} at node {node['node']} "
        f"({node['name']}), between {duration(differs.start_ns)} and {duration(differs.end_ns)} "
        "after the first start"
    )
