"""Table `idle` by cause: idle time of devices and streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longpole.engine.windows import window_of
from longpole.rows.frames import frame_of, frame_schema
from longpole.tables.activities import chosen
from longpole.tables.catalogue import view
from longpole.tables.device_times import SHORT_NS
from longpole.tables.legends import WHOLE_DEVICE, lacks
from longpole.tables.needs import ACTIVITIES
from longpole.tables.statistics import DurationFigures

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace


class IdleTimeRow(DurationFigures):
    """All idle intervals of a device or stream with the same cause."""

    device: int | None
    stream: int | None
    """Number of the stream; null for the device as a whole."""
    cause: str
    """`waiting_for_launch`: the next activity had not been launched when the interval began;
    counted until its launch call returned, plus the following pause if that is shorter than
    `short_ns`. `between_activities`: it had been launched, and the interval is shorter than
    `short_ns`. `other_wait`: it had been launched but waited longer, for another stream or for a
    free device. `unlinked`: its launch is not known. `after_last`: no activity follows in the
    trace. The cause is that of the whole interval, also if the window cuts it."""
    count: int
    duration_ns: int
    share_of_idle: float | None
    """Share of all idle time of the device or stream."""
    window_share: float | None
    host_ns: int | None
    """Part before the launch call returned; null if unknown."""


@view(
    IdleTimeRow,
    needs=(ACTIVITIES,),
    empty="No GPU activity ran in it.",
    legend=((lacks("stream"), WHOLE_DEVICE),),
)
def idle_time(
    trace: Trace,
    window: Window | None = None,
    *,
    where: pl.Expr | str | None = None,
    short_ns: int = SHORT_NS,
) -> pl.DataFrame:
    """Split the idle time of each device and stream by cause, with statistics of the intervals.

    Parameters
    ----------
    where
        A condition on the columns of `activities`; time in which none of these ran is idle.
    short_ns
        Maximum length of an interval before an already launched activity that counts as the usual
        pause between two activities.

    Returns
    -------
    DataFrame
        A row for each device and stream and each cause.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().launch("gemm", call=(0, 1), work=(2, 10))
    >>> trace = builder.launch("add", call=(30, 35), work=(40, 50)).read()
    >>> idle_time(trace).select("stream", "cause", "count", "duration_ns").rows()
    [(None, 'waiting_for_launch', 1, 30000), (None, 'between_activities', 1, 2000), \
(7, 'waiting_for_launch', 1, 30000), (7, 'between_activities', 1, 2000)]
    """
    window = window_of(trace, window)
    if window is None:
        return pl.DataFrame(schema=frame_schema(IdleTimeRow, last=DurationFigures))
    rows = chosen(trace, window, where)
    found = frame_of(trace.core.idle_causes(window.span, short_ns, rows))
    figures = ("mean", "std", "min", "p25", "median", "p75", "max")
    duration_ns = pl.col("duration_ns")
    return (
        found.rename({name: f"{name}_ns" for name in figures})
        .with_columns(
            share_of_idle=duration_ns / duration_ns.sum().over("device", "stream"),
            window_share=duration_ns / max(window.duration_ns, 1),
        )
        .sort("device", "stream", "duration_ns", "cause", descending=[False, False, True, False])
        .select(*frame_schema(IdleTimeRow, last=DurationFigures))
    )
