"""Draws several ranks as swim lanes: the critical path across them, then the calls of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.engine.windows import Window
from longpole.plot.layout import Layout, longest, not_drawn, path_spans

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from longpole.jobs.trace_set import TraceSet
    from longpole.plot.layout import Span
    from longpole.report.lanes import Lanes

_MOST_RANKS: Final = 24


def rank_lanes(
    traces: TraceSet, path: pl.DataFrame | None = None, step: int | None = None
) -> Lanes | None:
    """Lay out the path across ranks, and the calls in which each rank waited and transferred.

    `path` is that of `TraceSet.path` for the step, by default for the whole run, if already known.
    The ranks with the most time on the path are drawn; None without a path.
    """
    import polars as pl

    path = traces.path(step) if path is None else path
    start_ns, end_ns = traces.window(step)
    if path.is_empty() or end_ns <= start_ns:
        return None
    kind = pl.col("kind").cast(pl.String).str.replace_all("_", " ")
    path = path.with_columns(name=pl.coalesce(pl.col("name").cast(pl.String), kind))
    drawn = longest(path)
    window = Window("trace", None, start_ns, end_ns, "the path across ranks")
    layout = Layout()
    layout.add("critical path", path_spans(drawn, window))
    for rank in _ranks(traces, drawn):
        part = drawn.filter(pl.col("rank") == rank)
        if part.height:
            layout.add(f"rank {rank}, path", path_spans(part, window))
        layout.add(f"rank {rank}, calls", _calls(traces, rank, window))
    label = "The critical path across ranks, then of each rank its part of it and its calls."
    notes = not_drawn(path.height - drawn.height, "segment", "the shortest")
    notes += not_drawn(len(traces) - _MOST_RANKS, "rank", "those with the least of the path")
    return layout.lanes(label, end_ns - start_ns, paths=[("", end_ns - start_ns)], notes=notes)


def _ranks(traces: TraceSet, path: pl.DataFrame) -> list[int]:
    """Choose the ranks with the most time on the path."""
    import polars as pl

    on_path = dict(path.group_by("rank").agg(pl.col("duration_ns").sum()).iter_rows())
    order = sorted(traces.rank_numbers, key=lambda rank: (-on_path.get(rank, 0), rank))
    return sorted(order[:_MOST_RANKS])


def _calls(traces: TraceSet, rank: int, window: Window) -> Iterator[Span]:
    """Yield the waits and transfers of a rank; of overlapping calls, only the first."""
    import polars as pl

    known = traces.calls.select("call", "operation", "last")
    members = traces.members.filter(pl.col("rank") == rank).join(known, on="call", how="left")
    until = 0
    for row in members.sort("arrival_ns", "call").iter_rows(named=True):
        at = row["arrival_ns"] - window.start_ns
        for length, kind in _parts(row):
            start, end = max(at, until), min(at + length, window.duration_ns)
            at += length
            if end > start:
                yield start, end - start, kind, f"{row['operation'] or 'call'} {row['call']}"
                until = end


def _parts(row: dict[str, Any]) -> list[tuple[int, str]]:
    """Divide a call into waiting and transfer, if the rank that came last is known."""
    wait_ns, transfer_ns = row["wait_ns"] or 0, row["transfer_ns"] or 0
    if row["last"] is None:
        return [(wait_ns + transfer_ns, "communication, waiting included")]
    return [(wait_ns, "waiting for the last rank"), (transfer_ns, "transfer")]
