"""Two runs as swim lanes on one axis: a step of either side, beginning at the same place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.plot.lanes import add_lanes, left_out
from longpole.plot.layout import Layout, longest, path_spans
from longpole.windows import choose_window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.analyses.diff import Diff, DiffSide
    from longpole.report.lanes import Lanes
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["diff_lanes"]

_MOST_EVENTS: Final = 2_000
_MOST_ROWS: Final = 8


def diff_lanes(
    found: Diff, base: Sequence[Trace], new: Sequence[Trace], *, step_name: str | None = None
) -> Lanes | None:
    """Lay out the step of each side that its verdict is about; None where a side has none."""
    layout = Layout()
    drawn = [
        (name, trace, window)
        for name, side, traces in (("base", found.base, base), ("new", found.new, new))
        for trace in [_trace(side, traces)]
        if (window := _window(side, trace, step_name)) is not None and window.duration_ns
    ]
    if len(drawn) < 2:  # noqa: PLR2004 (sides)
        return None
    n_left_out = 0
    for name, trace, window in drawn:
        is_whole = window.kind == "trace"
        path = trace.critical_path(window.step, whole=is_whole, step_name=step_name)
        segments = path.segments
        kept = longest(segments, _MOST_EVENTS)
        layout.add(f"{name}: critical path", path_spans(kept, window))
        n_left_out += segments.height - kept.height
    for name, trace, window in drawn:
        n_left_out += add_lanes(
            layout, trace, window, most=_MOST_EVENTS, most_rows=_MOST_ROWS, before=f"{name}: "
        )
    sides = " and ".join(f"{window.name} of {name}" for name, _, window in drawn)
    length_ns = max(window.duration_ns for _, _, window in drawn)
    label = f"What ran in {sides}, on one axis."
    paths = [(f"{name}: ", window.duration_ns) for name, _, window in drawn]
    return layout.lanes(label, length_ns, paths=paths, notes=left_out(n_left_out))


def _trace(side: DiffSide, traces: Sequence[Trace]) -> Trace:
    """Take the trace that the details are about: the rank, and of several runs the one."""
    of_rank = [trace for trace in traces if trace.rank == side.rank] or list(traces)
    return next((trace for trace in of_rank if _is_about(side, trace)), of_rank[0])


def _is_about(side: DiffSide, trace: Trace) -> bool:
    number, steps = side.verdict.window.number, trace.steps
    lengths = (steps["window_end_ns"] - steps["window_start_ns"]).filter(steps["step"] == number)
    return side.verdict.window.length_ns in lengths


def _window(side: DiffSide, trace: Trace, step_name: str | None) -> Window | None:
    span = side.verdict.window
    step = span.number if span.unit == "step" else None
    return choose_window(trace, step, step_name=step_name)
