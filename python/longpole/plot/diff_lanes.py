"""Two runs as swim lanes on one axis: a step of either side, beginning at the same place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.errors import WindowError
from longpole.plot.lanes import add_lanes, left_out
from longpole.plot.layout import Layout, longest, path_spans
from longpole.windows import choose_window

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

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
    """Lay out the step of each side that its verdict is about; None if a side has none."""
    old, now = _drawn(found.base, base, step_name), _drawn(found.new, new, step_name)
    if old is None or now is None:
        return None
    drawn = (("base", *old), ("new", *now))
    layout = Layout()
    n_left_out = 0
    for name, trace, window in drawn:
        segments = _segments(trace, window, step_name)
        kept = longest(segments, _MOST_EVENTS)
        layout.add(f"{name}: critical path", path_spans(kept, window))
        n_left_out += segments.height - kept.height
    for name, trace, window in drawn:
        n_left_out += add_lanes(
            layout, trace, window, most=_MOST_EVENTS, most_rows=_MOST_ROWS, before=f"{name}: "
        )
    sides = " and ".join(f"{window.name} of {name}" for name, _, window in drawn)
    without = ", without the profiler" if any(map(_is_corrected, (found.base, found.new))) else ""
    return layout.lanes(
        f"What ran in {sides}, on one axis{without}.",
        max(window.duration_ns for _, _, window in drawn),
        paths=[(f"{name}: ", window.duration_ns) for name, _, window in drawn],
        notes=left_out(n_left_out),
    )


def _drawn(
    side: DiffSide, traces: Sequence[Trace], step_name: str | None
) -> tuple[Trace, Window] | None:
    """Return the trace and window that the details of a side are about."""
    if _is_corrected(side):
        traces = [trace.without_profiler(step_name=step_name) for trace in traces]
    of_rank = [trace for trace in traces if trace.rank == side.rank] or list(traces)
    known = ((trace, _window(side, trace, step_name)) for trace in of_rank)
    found = [(trace, window) for trace, window in known if window and window.duration_ns]
    length_ns = side.verdict.window.length_ns
    about = [pair for pair in found if pair[1].duration_ns == length_ns]
    return next(iter([*about, *found]), None)


def _is_corrected(side: DiffSide) -> bool:
    """Return whether the figures of a side leave out what the profiler added."""
    return side.mean_ns != side.recorded_mean_ns


def _window(side: DiffSide, trace: Trace, step_name: str | None) -> Window | None:
    span = side.verdict.window
    step = span.number if span.unit == "step" else None
    try:
        return choose_window(trace, step, step_name=step_name)
    except WindowError:
        return None


def _segments(trace: Trace, window: Window, step_name: str | None) -> pl.DataFrame:
    is_whole = window.kind == "trace"
    return trace.critical_path(window.step, whole=is_whole, step_name=step_name).segments
