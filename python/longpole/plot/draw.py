"""Draws answers as plotly figures."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from longpole.errors import MissingDependencyError
from longpole.plot.figures import figure_of, lanes_figure, lateness_figure
from longpole.plot.rank_lanes import rank_lanes
from longpole.plot.step_lanes import step_lanes
from longpole.plot.tuning_figures import (
    best_so_far_figure,
    heat_map_figure,
    parallel_coordinates_figure,
)
from longpole.report.paths import kinds_chart
from longpole.tables.questions import questions
from longpole.tables.table_blocks import answer_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from longpole.bench.tune import Tuning
    from longpole.engine.windows import Window
    from longpole.jobs.trace_set import TraceSet
    from longpole.plot.figures import Figure
    from longpole.report.blocks import Block
    from longpole.trace.trace import Trace

COLORS: Final = {
    "bar": "#4e79a7",
    "kernel": "#4e79a7",
    "communication": "#8c6bb1",
    "copy": "#b07d2b",
    "operator": "#5b9a68",
    "runtime": "#9c755f",
    "annotation": "#8a939c",
    "data": "#c8553d",
    "wait": "#c9a0a0",
}


def figure(answer: Any, label: str = "") -> Any:
    """Draw an answer: the first table or chart of its `blocks()` that has a quantity.

    `answer` can also be a list of blocks; `label` is the title.

    Raises
    ------
    MissingDependencyError
        plotly is not installed.
    ValueError
        The answer has nothing to draw.
    """
    blocks = answer.blocks() if hasattr(answer, "blocks") else answer
    return _drawn(figure_of(blocks, label), label)


def path(trace: Trace, step: int | str | None = None, *, whole: bool = False) -> Any:
    """Draw the critical path of a step by kind; the arguments are those of `critical_path`."""
    chart = kinds_chart(trace.critical_path(step, whole=whole))
    return figure([chart], "Critical path by kind")


def step_times(trace: Trace) -> Any:
    """Draw the length of each step, and what its busiest device did in it."""
    lanes = step_lanes(trace)
    return _drawn(None if lanes is None else lanes_figure(lanes), lanes.label if lanes else "")


def lateness(traces: TraceSet) -> Any:
    """Draw how much later than the median rank each rank came to each call, as a heat map."""
    return _drawn(lateness_figure(traces), "Late arrivals")


def rank_path(traces: TraceSet, step: int | None = None) -> Any:
    """Draw the critical path across ranks of a step, or of the run, as swim lanes."""
    lanes = rank_lanes(traces, step=step)
    return _drawn(None if lanes is None else lanes_figure(lanes), "Critical path across ranks")


def best_so_far(found: Tuning) -> Any:
    """Draw how the best result of a search improved over its measuring time."""
    return _drawn(best_so_far_figure(found), "Best candidate so far")


def parallel_coordinates(found: Tuning) -> Any:
    """Draw the candidates of a search as lines through the values of their parameters."""
    return _drawn(parallel_coordinates_figure(found), "Candidates")


def heat_map(found: Tuning, x: str, y: str) -> Any:
    """Draw the best result of a search for each combination of two parameters.

    The winner and the candidates that do not differ significantly from it are marked.
    """
    return _drawn(heat_map_figure(found, x, y), f"Best value by {x} and {y}")


def question(name: str) -> Callable[..., Any]:
    """Return a function that draws a question of `longpole.tables` for a trace and a window.

    Raises
    ------
    AttributeError
        There is no such question.
    """
    titles = questions()
    if name not in titles:
        message = f"module 'longpole.plot' has no attribute {name!r}"
        raise AttributeError(message)
    return partial(_asked, name, titles[name])


def _asked(
    name: str, title: str, trace: Trace, window: Window | None = None, by: str | None = None
) -> Any:
    blocks: Iterable[Block] = answer_blocks(name, trace, window, by)
    return figure(blocks, title)


def _colored(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plotly trace with the colour of its kind in reports, or a colour for each bar.

    Some traces have colours of their own.
    """
    if trace["type"] in {"heatmap", "parcoords"} or trace.get("mode") == "text":
        return dict(trace)
    color = (trace.get("meta") or {}).get("color", "bar")
    named = [COLORS[name] for name in color] if isinstance(color, list) else COLORS.get(color)
    return {**trace, "marker": {"color": named}}


def _drawn(found: Figure | None, label: str) -> Any:
    """Create a plotly figure."""
    try:
        from plotly.graph_objects import Figure as PlotlyFigure
    except ImportError as error:
        message = "figures need plotly\nhint: pip install 'longpole[plot]'"
        raise MissingDependencyError(message) from error
    if found is None:
        message = "the answer holds nothing that can be drawn"
        raise ValueError(message)
    traces = [_colored(trace) for trace in found.data]
    return PlotlyFigure(data=traces, layout={**found.layout, "title": {"text": label}})
