"""Table `breakdown` by types: how long compute, communication and copies overlapped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.engine.windows import window_of
from longpole.rows.frames import frame_of, frame_schema
from longpole.tables.activities import chosen
from longpole.tables.catalogue import view
from longpole.tables.needs import ACTIVITIES
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_CLASSES: Final = ("compute", "communication", "copy")


class ActivityTypesRow(Row):
    """Time in which exactly this set of types of GPU activities ran on a device."""

    device: int | None
    types: str
    """Types that ran, such as `compute + communication`; `idle` if none ran."""
    duration_ns: int
    busy_share: float | None
    """Share of the time in which any activity ran; null for `idle`."""
    window_share: float


@view(
    ActivityTypesRow,
    needs=(ACTIVITIES,),
    empty="No GPU activity ran in it.",
)
def activity_types(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """Measure how long each combination of activity types ran at the same time, per device.

    Returns
    -------
    DataFrame
        A row for each device and set of types, the longest first. The durations of a device sum
        to the window.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().launch("gemm", call=(0, 1), work=(1, 30))
    >>> trace = builder.launch("ncclAllReduce", call=(1, 2), work=(20, 60), stream=9).read()
    >>> activity_types(trace).select("types", "duration_ns").rows()
    [('communication', 30000), ('compute', 19000), ('compute + communication', 10000), \
('idle', 1000)]
    """
    window = window_of(trace, window)
    if window is None:
        return pl.DataFrame(schema=frame_schema(ActivityTypesRow))
    rows = frame_of(trace.core.class_times(window.span, chosen(trace, window, where)))
    duration_ns = pl.col("duration_ns")
    is_busy = pl.any_horizontal(_CLASSES)
    busy_ns = duration_ns.filter(is_busy).sum().over("device")
    names = pl.concat_list(pl.when(pl.col(name)).then(pl.lit(name)) for name in _CLASSES)
    return (
        rows.with_columns(
            types=pl.when(is_busy)
            .then(names.list.drop_nulls().list.join(" + "))
            .otherwise(pl.lit("idle")),
            busy_share=pl.when(is_busy).then(duration_ns / busy_ns),
            window_share=duration_ns / window.duration_ns,
        )
        .sort("device", "duration_ns", "types", descending=[False, True, False])
        .select(*frame_schema(ActivityTypesRow))
    )
