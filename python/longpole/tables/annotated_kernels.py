"""Table `kernels` by annotation: GPU activities by annotation and name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.engine.windows import is_step, window_of
from longpole.rows.frames import frame_of, row_bytes
from longpole.rows.selection import matching
from longpole.tables.activities import own_activities
from longpole.tables.activity_sums import ActivitySum, by_keys
from longpole.tables.catalogue import view
from longpole.tables.legends import lacks
from longpole.tables.needs import ACTIVITIES, LAUNCHES
from longpole.trace import sweeps

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_NO_ANNOTATION: Final = (
    "Rows without an annotation were launched outside all annotations; those of steps do not count."
)


class AnnotatedKernelRow(ActivitySum):
    """All GPU activities with the same name in the same annotation."""

    annotation: str | None
    """Innermost annotation around the launch; otherwise the one that the profiler recorded on the
    stream."""
    is_backward: bool
    """Whether it belongs to a backward pass, which is linked through the forward operator."""


@view(
    AnnotatedKernelRow,
    needs=(ACTIVITIES, LAUNCHES),
    empty="No GPU activity ran in it.",
    legend=((lacks("annotation"), _NO_ANNOTATION),),
)
def annotated_kernels(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """Rank the GPU activities of a window under each annotation of the program.

    Parameters
    ----------
    where
        A condition on the columns of `activities`, `annotation` and `is_backward`.

    Returns
    -------
    DataFrame
        A row for each annotation and name. Steps do not count as annotations. An activity of a
        backward pass has the annotation around its forward operator, by the sequence number;
        where no annotation is known, it is null, so that every activity is in one row.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().annotation("forward", (0, 20))
    >>> trace = builder.launch("gemm", call=(5, 10), work=(12, 60)).read()
    >>> annotated_kernels(trace).select("annotation", "name", "duration_ns").rows()
    [('forward', 'gemm', 48000)]
    """
    window = window_of(trace, window)
    found = with_annotations(trace, own_activities(trace, window))
    keys = ("annotation", "is_backward", "kind", "work_class", "name")
    return by_keys(matching(found, where), window, *keys)


def with_annotations(trace: Trace, found: pl.DataFrame) -> pl.DataFrame:
    """Return activities with their annotation, and whether it was found through autograd."""
    ranges = frame_of(trace.core.device_ranges(row_bytes(_drawn_ranges(trace))))
    ours = trace.annotations.filter(~is_step(trace))["event"]
    around = sweeps.around(trace, found["call"], ours, "innermost")
    if not ranges.is_empty():
        drawn = found.select("event").join(ranges, on="event", how="left", maintain_order="left")
        around = drawn.select(pl.coalesce(around, "annotation")).to_series()
    of_forward = sweeps.around(trace, _forward_operators(trace, found["call"]), ours, "innermost")
    # The number of an event is its row in `events`.
    names = trace.events["name"].gather(around.fill_null(of_forward))
    is_backward = around.is_null() & of_forward.is_not_null()
    return found.with_columns(names.alias("annotation"), is_backward.alias("is_backward"))


def _forward_operators(trace: Trace, calls: pl.Series) -> pl.Series:
    """Find the forward operator of each call made in a backward pass; null for other calls."""
    links = trace.backward_links
    nodes = sweeps.around(trace, calls, links["backward"], "innermost")
    return nodes.to_frame("backward").join(
        links.unique("backward", maintain_order=True),
        on="backward",
        how="left",
        maintain_order="left",
    )["forward"]


def _drawn_ranges(trace: Trace) -> pl.Series:
    """List the annotations that the profiler recorded on streams, without those of steps."""
    events = trace.events
    drawn = events.filter(pl.col("kind") == "device_annotation")
    steps = trace.steps["name"].cast(pl.String).unique()
    return drawn.filter(~pl.col("name").cast(pl.String).is_in(steps.implode()))["event"]
