"""Draws two runs as swim lanes: a step of each side, one picture below the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.engine.windows import choose_window
from longpole.errors import WindowError
from longpole.plot.lanes import add_lanes, left_out
from longpole.plot.layout import Layout, longest, path_spans
from longpole.words.wording import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from longpole.diffs import Diff, DiffSide
    from longpole.engine.windows import Window
    from longpole.report.lanes import Lanes
    from longpole.trace.trace import Trace

_MOST_EVENTS: Final = 2_000
_MOST_ROWS: Final = 16

# If one step is more than this many times as long as the other, each has its own axis.
_MOST_SHARED: Final = 4


def diff_lanes(
    found: Diff, base: Sequence[Trace], new: Sequence[Trace], *, step_name: str | None = None
) -> list[Lanes]:
    """Lay out the step of each side that the verdict is about, as one picture for each side.

    Both have the same axis, unless one of them would be too small to see. Empty if a side has no
    such step.
    """
    sides = {"base": (found.base, base), "new": (found.new, new)}
    drawn = {name: _drawn(side, traces, step_name) for name, (side, traces) in sides.items()}
    lengths_ns = [pair[1].duration_ns for pair in drawn.values() if pair is not None]
    if len(lengths_ns) < len(sides):
        return []
    is_shared = max(lengths_ns) <= _MOST_SHARED * min(lengths_ns)
    return [
        _lanes(
            name,
            *pair,
            step_name=step_name,
            axis_ns=max(lengths_ns) if is_shared else pair[1].duration_ns,
            note=_words_of(sides[name][0], is_shared=is_shared),
        )
        for name, pair in drawn.items()
        if pair is not None
    ]


def _lanes(
    name: str, trace: Trace, window: Window, *, step_name: str | None, axis_ns: int, note: str
) -> Lanes:
    """Lay out one side: its critical path, then its streams and threads."""
    layout = Layout()
    segments = _segments(trace, window, step_name)
    kept = longest(segments, _MOST_EVENTS)
    layout.add("critical path", path_spans(kept, window))
    n_left_out = segments.height - kept.height
    n_left_out += add_lanes(layout, trace, window, most=_MOST_EVENTS, most_rows=_MOST_ROWS)
    title = "Base" if name == "base" else "New side"
    return layout.lanes(
        f"{title}: what ran in {window.name}, {duration(window.duration_ns)}{note}.",
        axis_ns,
        paths=[("", window.duration_ns)],
        notes=left_out(n_left_out),
    )


def _words_of(side: DiffSide, *, is_shared: bool) -> str:
    without = " without the profiler" if _is_corrected(side) else ""
    return (
        f"{without}, on {'the same axis as the other side' if is_shared else 'an axis of its own'}"
    )


def _drawn(
    side: DiffSide, traces: Sequence[Trace], step_name: str | None
) -> tuple[Trace, Window] | None:
    """Return the trace and the window that are drawn for a side."""
    if _is_corrected(side):
        traces = [trace.without_profiler(step_name=step_name) for trace in traces]
    of_rank = [trace for trace in traces if trace.rank == side.rank] or list(traces)
    known = ((trace, _window(side, trace, step_name)) for trace in of_rank)
    found = [(trace, window) for trace, window in known if window and window.duration_ns]
    length_ns = side.verdict.window.length_ns
    about = [pair for pair in found if pair[1].duration_ns == length_ns]
    return next(iter([*about, *found]), None)


def _is_corrected(side: DiffSide) -> bool:
    """Whether the times of a side exclude the recording cost."""
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
