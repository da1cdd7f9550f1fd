"""Table `annotated_kernels`: the GPU activities of a window by annotation and name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longpole import sweeps
from longpole.analyses.activities import activities
from longpole.analyses.kernels import by_keys
from longpole.selection import matching
from longpole.windows import is_step, window_of

if TYPE_CHECKING:
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["annotated_kernels", "with_annotations"]


def annotated_kernels(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """Rank the GPU activities of a window under each annotation of the program.

    Parameters
    ----------
    trace
        The trace.
    window
        From `choose_window`; by default the window that it chooses without more.
    where
        A condition on the columns of `activities` and `annotation`.

    Returns
    -------
    DataFrame
        The columns of `kernels`, and `annotation` before them: the innermost around the call
        that launched the activity, else the one that the profiler drew on the stream. Steps
        say when and not what, and do not count. It is null where there is neither: every
        activity is in one row.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().annotation("forward", (0, 20))
    >>> trace = builder.launch("gemm", call=(5, 10), work=(12, 60)).read()
    >>> annotated_kernels(trace).select("annotation", "name", "duration_ns").rows()
    [('forward', 'gemm', 48000)]
    """
    window = window_of(trace, window)
    found = with_annotations(trace, activities(trace, window))
    return by_keys(matching(found, where), "annotation", "kind", "work_class", "name")


def with_annotations(trace: Trace, found: pl.DataFrame) -> pl.DataFrame:
    """Give activities with the name of their annotation."""
    ranges = sweeps.device_ranges(trace, _drawn_ranges(trace))
    ours = trace.annotations.filter(~is_step(trace))["event"]
    around = sweeps.around(trace, found["call"], ours, "innermost")
    if not ranges.is_empty():
        drawn = found.select("event").join(ranges, on="event", how="left", maintain_order="left")
        around = drawn.select(pl.coalesce(around, "annotation")).to_series()
    # The rows of a frame of events are their numbers.
    names = trace.events["name"].gather(around)
    return found.with_columns(names.alias("annotation"))


def _drawn_ranges(trace: Trace) -> pl.Series:
    """List the annotations that the profiler drew on streams, without those of steps."""
    events = trace.events
    drawn = events.filter(pl.col("kind") == "device_annotation")
    steps = trace.steps["name"].cast(pl.String).unique()
    return drawn.filter(~pl.col("name").cast(pl.String).is_in(steps.implode()))["event"]
