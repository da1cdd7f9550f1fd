"""Figures of several ranks: who came late to which call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.plot.figures import Figure, rows_size

if TYPE_CHECKING:
    import polars as pl

    from longpole.traces.trace_set import TraceSet

__all__ = ["lateness_figure"]

_MOST_CALLS: Final = 400
_MOST_RANKS: Final = 64
_LATE: Final = [[0, "#f3f4f6"], [0.5, "#e3a08a"], [1, "#b42318"]]


def lateness_figure(traces: TraceSet) -> Figure | None:
    """Draw by how much each rank came later to each call than the median rank; None without calls.

    Earlier is as good as in time. A rank without a share in a call has no colour there. Of many
    calls or ranks, those with the latest arrivals are drawn.
    """
    late = _lateness(traces)
    if late.is_empty():
        return None
    calls = _latest(late, "call", _MOST_CALLS)
    ranks = _latest(late, "rank", _MOST_RANKS)
    cells = {
        (rank, call): late_ns / 1e6
        for rank, call, late_ns in late.select("rank", "call", "late_ns").drop_nulls().iter_rows()
    }
    names = {row["call"]: _call_name(row) for row in traces.calls.iter_rows(named=True)}
    heat_map = {
        "type": "heatmap",
        "z": [[cells.get((rank, call)) for call in calls] for rank in ranks],
        "x": list(range(len(calls))),
        "y": [f"rank {rank}" for rank in ranks],
        "text": [[names[call] for call in calls] for _ in ranks],
        "colorscale": _LATE,
        "zmin": 0,
        "hoverongaps": False,
        "hovertemplate": "%{y}, %{text}: %{z:.3g} ms late<extra></extra>",
        "colorbar": {"title": {"text": "ms late"}},
    }
    layout = {
        "xaxis": {"title": {"text": "call, in order of time"}},
        "yaxis": {"autorange": "reversed", "type": "category"},
        **rows_size(len(ranks), 18, least=160),
    }
    return Figure([heat_map], layout, "By how much each rank came later than the median rank.")


def _lateness(traces: TraceSet) -> pl.DataFrame:
    """Return each rank's arrival at a collective call, as time after the median arrival."""
    import polars as pl

    arrivals = pl.col("arrival_ns")
    late = traces.members.with_columns(
        late_ns=(arrivals - arrivals.quantile(0.5, "lower").over("call")).clip(lower_bound=0)
    )
    return late.filter(pl.len().over("call") > 1)


def _latest(late: pl.DataFrame, key: str, most: int) -> list[int]:
    """Return those with the latest arrivals, in their order."""
    import polars as pl

    worst = late.group_by(key).agg(pl.col("late_ns").max())
    kept = worst.sort("late_ns", key, descending=[True, False]).head(most)
    return [int(value) for value in kept[key].sort()]


def _call_name(row: dict[str, Any]) -> str:
    number = row["call"] if row["sequence"] is None else row["sequence"]
    group = f" of group {row['group']}" if row["group"] else ""
    return f"{row['operation'] or 'call'} {number}{group}".replace("<", "&lt;")
