"""Figures of several ranks: who came late to which call, and where the path ran."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from longpole.plot.figures import Figure
from longpole.plot.layout import longest
from longpole.wording import count

if TYPE_CHECKING:
    import polars as pl

    from longpole.traces.trace_set import TraceSet

__all__ = ["lateness_figure", "rank_path_figure"]

_MOST_CALLS: Final = 400
_MOST_RANKS: Final = 64
_MOST_SEGMENTS: Final = 20_000
_LATE: Final = [[0, "#f3f4f6"], [0.5, "#e3a08a"], [1, "#b42318"]]
_KINDS: Final = {
    "kernel": "kernel",
    "transfer": "communication",
    "communication": "communication",
    "copy": "copy",
    "operator": "operator",
    "runtime": "runtime",
    "data_loading": "python",
}


def lateness_figure(traces: TraceSet) -> Figure | None:
    """Draw by how much each rank came later to each call than the median rank; None without calls.

    Earlier is as good as in time. A rank without a share in a call has no colour there. Of many
    calls or ranks, those with the latest arrivals are drawn.
    """
    import polars as pl

    arrivals = pl.col("arrival_ns")
    late = traces.members.with_columns(
        late_ns=(arrivals - arrivals.quantile(0.5, "lower").over("call")).clip(lower_bound=0)
    )
    late = late.filter(pl.len().over("call") > 1)
    if late.is_empty():
        return None
    calls = _latest(late, "call", _MOST_CALLS)
    ranks = _latest(late, "rank", _MOST_RANKS)
    cells = {
        (rank, call): ns for rank, call, ns in late.select("rank", "call", "late_ns").iter_rows()
    }
    names = {row["call"]: _call_name(row) for row in traces.calls.iter_rows(named=True)}
    values = [
        [None if (ns := cells.get((rank, call))) is None else ns / 1e6 for call in calls]
        for rank in ranks
    ]
    data = {
        "type": "heatmap",
        "z": values,
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
        "height": 140 + 18 * len(ranks),
    }
    return Figure([data], layout, "By how much each rank came later than the median rank.")


def rank_path_figure(path: pl.DataFrame) -> Figure | None:
    """Draw the path across ranks: a lane for each rank on it, and a step where it changes rank."""
    import polars as pl

    if path.is_empty():
        return None
    zero_ns = int(path["start_ns"][0])
    drawn = longest(path, _MOST_SEGMENTS)
    ranks = sorted(drawn["rank"].unique())
    lanes = {rank: f"rank {rank}" for rank in ranks}
    data: list[dict[str, Any]] = []
    for kind in sorted(set(drawn["kind"].cast(pl.String))):
        rows = list(drawn.filter(pl.col("kind").cast(pl.String) == kind).iter_rows(named=True))
        told = kind.replace("_", " ")
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": told,
                "y": [lanes[row["rank"]] for row in rows],
                "base": [(row["start_ns"] - zero_ns) / 1e6 for row in rows],
                "x": [row["duration_ns"] / 1e6 for row in rows],
                "hovertext": [(row["name"] or told).replace("<", "&lt;") for row in rows],
                "hovertemplate": f"{told}: %{{hovertext}}, %{{x:.3g}} ms<extra></extra>",
                "meta": {"color": _KINDS.get(kind, "annotation")},
            }
        )
    hops: tuple[list[float | None], list[str | None]] = ([], [])
    for start_ns, before, behind in _hops(drawn):
        hops[0].extend([(start_ns - zero_ns) / 1e6] * 2 + [None])
        hops[1].extend([lanes[before], lanes[behind], None])
    line = {"type": "scatter", "mode": "lines", "x": hops[0], "y": hops[1], "hoverinfo": "skip"}
    data.append({**line, "name": "next rank", "meta": {"color": "path"}})
    layout = {
        "barmode": "overlay",
        "xaxis": {"title": {"text": "ms"}},
        "yaxis": {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": [lanes[rank] for rank in reversed(ranks)],
        },
        "legend": {"orientation": "h", "y": 1.12},
        "height": 160 + 28 * len(ranks),
    }
    n_left = path.height - drawn.height
    left = f" {count(n_left, 'shorter segment')} {'is' if n_left == 1 else 'are'} not drawn."
    caption = f"Where the critical path ran: only the ranks on it.{left if n_left else ''}"
    return Figure(data, layout, caption)


def _hops(path: pl.DataFrame) -> list[tuple[int, int, int]]:
    rows = list(path.select("start_ns", "rank").iter_rows())
    return [(now[0], before[1], now[1]) for before, now in pairwise(rows) if before[1] != now[1]]


def _latest(late: pl.DataFrame, key: str, most: int) -> list[int]:
    """Take those with the latest arrivals, in their order."""
    import polars as pl

    worst = late.group_by(key).agg(pl.col("late_ns").max())
    kept = worst.sort("late_ns", key, descending=[True, False]).head(most)
    return [int(value) for value in kept[key].sort()]


def _call_name(row: dict[str, Any]) -> str:
    number = row["call"] if row["sequence"] is None else row["sequence"]
    group = f" of group {row['group']}" if row["group"] else ""
    return f"{row['operation'] or 'call'} {number}{group}".replace("<", "&lt;")
