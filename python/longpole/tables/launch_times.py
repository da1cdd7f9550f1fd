"""Table `launches` by activity: each launch with its call, delay and activity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.rows.frames import frame_schema
from longpole.tables.activities import own_activities
from longpole.tables.catalogue import view
from longpole.tables.legends import is_negative
from longpole.tables.needs import ACTIVITIES, CALLS, LAUNCHES
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

INSIDE_CALL: Final = "A delay below zero: the activity began before its launch call returned."
"""What a negative delay means."""

_SLOW_CALL_NS: Final = 50_000
LONG_DELAY_NS: Final = 100_000
"""Delay from which a launch counts as delayed."""


class LaunchTimeRow(Row):
    """A GPU activity whose launch is known."""

    event: int
    kind: str
    name: str
    duration_ns: int
    """Duration of the activity."""
    delay_ns: int
    """Time from the return of the call to the start; negative if it began before the call
    returned."""
    call_name: str
    call_duration_ns: int
    call: int
    device: int | None
    stream: int | None
    is_short: bool
    """Whether the call took longer than the activity."""
    is_slow_call: bool
    is_long_delay: bool
    correlation: int | None


@view(
    LaunchTimeRow,
    needs=(ACTIVITIES, CALLS, LAUNCHES),
    empty="No GPU activity of it was launched by a recorded call.",
    legend=((is_negative("delay_ns"), INSIDE_CALL),),
)
def launch_times(
    trace: Trace,
    window: Window | None = None,
    *,
    where: pl.Expr | str | None = None,
    slow_call_ns: int = _SLOW_CALL_NS,
    long_delay_ns: int = LONG_DELAY_NS,
) -> pl.DataFrame:
    """List the GPU activities of a window with the times of their launches.

    Parameters
    ----------
    slow_call_ns, long_delay_ns
        Times from which a call is slow and a delay long.

    Returns
    -------
    DataFrame
        A row for each activity, in the order of the file.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("add", call=(0, 10), work=(12, 15)).read()
    >>> launch_times(trace).select("delay_ns", "is_short", "is_slow_call").row(0)
    (2000, True, False)
    """
    linked = own_activities(trace, window, where=where).filter(pl.col("call").is_not_null())
    call_ns, delay_ns = pl.col("call_duration_ns"), pl.col("delay_ns")
    return linked.with_columns(
        is_short=pl.col("duration_ns") < call_ns,
        is_slow_call=call_ns > slow_call_ns,
        is_long_delay=delay_ns > long_delay_ns,
    ).select(*frame_schema(LaunchTimeRow))
