"""The bars of a table or a chart, as plain values for plotly."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from longpole.report.blocks import Chart, Table
from longpole.words.wording import count, duration, share, short_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

    from longpole.jobs.trace_set import TraceSet
    from longpole.report.blocks import Block, Cell, Column
    from longpole.report.lanes import Lanes

_MOST_BARS: Final = 15
_WIDEST: Final = 44
_ONE_BY_ONE: Final = ("event", "time_ns", "start_ns")
"""Columns of tables with one row per event or moment, for which bars are not useful."""

_DRAWN: Final = ("duration", "share", "count")
_AXES: Final = {"duration": "ms", "share": "%", "count": "number"}
_MOST_CALLS: Final = 400
_MOST_RANKS: Final = 64
_LATE: Final = [[0, "#f3f4f6"], [0.5, "#e3a08a"], [1, "#b42318"]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A plotly figure, as plain values."""

    data: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any]
    label: str


def figure_of(blocks: Iterable[Block], label: str) -> Figure | None:
    """Draw the first table or chart of an answer that has a quantity; None if none has one.

    Examples
    --------
    >>> from longpole.report.blocks import Column
    >>> table = Table((Column("kernel", "name"), Column("time", "duration")), [("gemm", 2_000_000)])
    >>> figure_of([table], "kernels").data[0]["x"]
    [2.0]
    """
    for block in blocks:
        if isinstance(block, Chart) and block.bars:
            rows = [(bar.label, bar.share) for bar in block.bars]
            return _bars(rows, "share", label, colors=[bar.color for bar in block.bars])
        if isinstance(block, Table) and block.rows:
            found = _of_table(block, label)
            if found is not None:
                return found
    return None


def lanes_figure(lanes: Lanes) -> Figure:
    """Draw swim lanes as bars: one plotly trace for each kind, the first lane on top."""
    layout = {
        "barmode": "overlay",
        "xaxis": {"title": {"text": "ms"}},
        "yaxis": {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": [row["label"] for row in reversed(lanes.rows)],
        },
        **rows_size(len(lanes.rows), 28, least=20 * len(lanes.kinds)),
    }
    return Figure(_lane_bars(lanes), layout, lanes.label)


def _lane_bars(lanes: Lanes) -> list[dict[str, Any]]:
    """Return the bars of each kind, for all lanes."""
    by_kind: list[dict[str, Any]] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": kind,
            "y": [],
            "base": [],
            "x": [],
            "hovertext": [],
            "hovertemplate": "%{hovertext}: %{x:.3g} ms<extra></extra>",
            "meta": {"color": color},
        }
        for kind, color in zip(lanes.kinds, lanes.colors, strict=True)
    ]
    for row in lanes.rows:
        spans = zip(accumulate(row["starts"]), row["lengths"], row["names"], strict=True)
        for (start, length, name), kind in zip(spans, row["kinds"], strict=True):
            bars = by_kind[kind]
            bars["y"].append(row["label"])
            bars["base"].append(start / 1e6)
            bars["x"].append(length / 1e6)
            bars["hovertext"].append(lanes.names[name].replace("<", "&lt;"))
    return by_kind


def rows_size(n_rows: int, row_pixels: int, *, least: int = 0) -> dict[str, Any]:
    """Return the margins and the height of a figure with enough space for each row."""
    return {"margin": {"t": 60, "b": 60}, "height": 120 + max(least, row_pixels * n_rows)}


def _of_table(table: Table, label: str) -> Figure | None:
    """Draw the first time or share of a table, else its first number, labelled by the row names."""
    if any(column.title in _ONE_BY_ONE for column in table.columns):
        return None
    texts = [at for at, column in enumerate(table.columns) if column.is_left]
    name = next((at for at in texts if table.columns[at].type == "name"), min(texts, default=None))
    quantities = [at for at, column in enumerate(table.columns) if _is_quantity(column)]
    if not quantities:
        return None
    # `min` returns the first of equal columns.
    drawn = min(quantities, key=lambda at: table.columns[at].type == "count")
    rows = [
        (_label(table.columns, row, name), float(value))
        for row in table.rows
        if isinstance(value := row[drawn], int | float) and value > 0
    ]
    column = table.columns[drawn]
    return _bars(rows, column.type, label, column.title) if rows else None


def _is_quantity(column: Column) -> bool:
    """Whether a column can be drawn; the length of the window is the same in all rows."""
    return column.type in _DRAWN and column.title not in {"count", "window"}


def _label(columns: Sequence[Column], row: Sequence[Cell], name: int | None) -> str:
    """Label a row with its first string, preceded by its identifying numbers."""
    parts = [] if name is None else [str(row[name])]
    numbers = [
        f"{column.title} {row[at]}"
        for at, column in enumerate(columns)
        if column.type == "number"
        and column.title != "count"
        and row[at] is not None
        and (name is None or at < name)
    ]
    return ", ".join([*numbers, *parts])


def _bars(
    rows: list[tuple[str, float]],
    kind: str,
    label: str,
    quantity: str = "",
    colors: Sequence[str] = (),
) -> Figure:
    """Draw horizontal bars, the first row on top, in `colors` if given."""
    rows = rows[:_MOST_BARS]
    scale = {"duration": 1e-6, "share": 100.0}.get(kind, 1.0)
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": [scale * value for _, value in rows],
        # Shortened names can be equal; the number keeps their bars separate.
        "y": list(range(len(rows))),
        "hovertext": _escaped(f"{name}: {_in_words(kind, value)}" for name, value in rows),
        "hoverinfo": "text",
        "meta": {"color": list(colors[:_MOST_BARS]) or "bar"},
    }
    layout = {
        "showlegend": False,
        "xaxis": {
            "title": {"text": f"{quantity} ({_AXES[kind]})" if quantity else _AXES[kind]},
            "rangemode": "tozero",
        },
        "yaxis": {
            "autorange": "reversed",
            "tickvals": list(range(len(rows))),
            "ticktext": _escaped(short_names([name for name, _ in rows], _WIDEST)),
        },
        **rows_size(len(rows), 26),
    }
    return Figure([bars], layout, label)


def _in_words(kind: str, value: float) -> str:
    if kind == "share":
        return share(value)
    return duration(value) if kind == "duration" else count(value)


def _escaped(texts: Iterable[str]) -> list[str]:
    return [text.replace("<", "&lt;") for text in texts]


def lateness_figure(traces: TraceSet) -> Figure | None:
    """Draw how much later than the median rank each rank came to each call; None without calls.

    Early arrivals have the colour of arrivals on time. A rank that does not take part in a call has
    no colour there. If there are many calls or ranks, those with the latest arrivals are drawn.
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
    """Return each rank's arrival at a collective call, relative to the median arrival."""
    import polars as pl

    arrivals = pl.col("arrival_ns")
    late = traces.members.with_columns(
        late_ns=(arrivals - arrivals.quantile(0.5, "lower").over("call")).clip(lower_bound=0)
    )
    return late.filter(pl.len().over("call") > 1)


def _latest(late: pl.DataFrame, key: str, most: int) -> list[int]:
    """Return the ones with the latest arrivals, in their original order."""
    import polars as pl

    worst = late.group_by(key).agg(pl.col("late_ns").max())
    kept = worst.sort("late_ns", key, descending=[True, False]).head(most)
    return [int(value) for value in kept[key].sort()]


def _call_name(row: dict[str, Any]) -> str:
    number = row["call"] if row["sequence"] is None else row["sequence"]
    group = f" of group {row['group']}" if row["group"] else ""
    return f"{row['operation'] or 'call'} {number}{group}".replace("<", "&lt;")
