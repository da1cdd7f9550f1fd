"""Table `annotations`: the time of annotations in a window, by name."""

# `from __future__ import annotations` would import the name of the table.
from typing import TYPE_CHECKING, Final, Literal

import polars as pl

from longpole.engine.windows import window_of
from longpole.rows.frames import typed
from longpole.rows.selection import matching
from longpole.tables.catalogue import table
from longpole.tables.needs import ANNOTATIONS
from longpole.tables.statistics import DurationFigures, described

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_SIDES: Final = {"annotation": "host", "device_annotation": "device"}


class AnnotationRow(DurationFigures):
    """All annotations with the same name, on the host or on a device."""

    side: Literal["host", "device"]
    """`host`; or `device` for the range that the profiler recorded around the kernels launched by
    the annotated thread. Kernels of backward passes are not included (see `kernels` by
    annotation)."""
    name: str
    count: int
    duration_ns: int
    """Sum of the parts inside the window. Nested ranges with the same name count twice."""


@table(
    AnnotationRow,
    needs=(ANNOTATIONS,),
    empty="No annotation ran in it.",
    is_of_host=True,
)
def annotations(
    trace: "Trace", window: "Window | None" = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """Rank the annotations of a window by total time, on threads and on streams.

    Parameters
    ----------
    where
        A condition on `side`, `name`, `process`, `thread`, `device`, `stream`, `start_ns` and
        `duration_ns`.

    Returns
    -------
    DataFrame
        A row for each side and name.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().annotation("fit", (0, 50)).annotation("fit", (50, 80))
    >>> trace = builder.operator("aten::mm", (0, 80)).read()
    >>> annotations(trace).select("side", "name", "count", "mean_ns").row(0)
    ('host', 'fit', 2, 40000.0)
    """
    window = window_of(trace, window)
    is_annotation = pl.any_horizontal(pl.col("kind") == kind for kind in _SIDES)
    is_on_host = pl.col("kind") == "annotation"
    found = trace.events.filter(is_annotation)
    found = (
        found.clear().with_columns(inside_ns="duration_ns")
        if window is None
        else pl.concat(
            [
                window.on_host.clip(found.filter(is_on_host)),
                window.clip(found.filter(~is_on_host)),
            ]
        ).sort("event")
    )
    side = pl.col("kind").cast(pl.String).replace_strict(_SIDES, return_dtype=pl.String)
    grouped = (
        matching(found.with_columns(side=side), where)
        .group_by("side", "name")
        .agg(
            "inside_ns",
            count=pl.len().cast(pl.Int64),
            duration_ns=pl.col("inside_ns").sum(),
        )
        .with_columns(pl.col("name").cast(pl.String))
        .sort("side", "duration_ns", "name", descending=[False, True, False])
    )
    figures = described("inside_ns", grouped["inside_ns"])
    return typed(pl.concat([grouped.drop("inside_ns"), figures], how="horizontal"))
