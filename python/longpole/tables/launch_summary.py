"""Table `launches` by call: launch times by runtime API call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.tables.catalogue import view
from longpole.tables.launch_times import INSIDE_CALL, LONG_DELAY_NS, launch_times
from longpole.tables.legends import is_negative
from longpole.tables.needs import ACTIVITIES, CALLS, LAUNCHES
from longpole.tables.statistics import described
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_COUNTS: Final = (
    "n_short: calls that took longer than what they launched; n_slow_calls: calls above 50 µs;"
    " n_delayed: a start more than 100 µs after the call."
)

_DESCRIBED: Final = {"call_ns": "call_", "delay_ns": "delay_", "activity_ns": "activity_"}


def _has_counts(rows: pl.DataFrame) -> bool:
    return any(bool(rows[name].max()) for name in ("n_short", "n_slow_calls", "n_delayed"))


class LaunchFigures(Row):
    """Statistics of calls, of the delays until their first activity, and of activities."""

    call_mean_ns: float | None
    call_std_ns: float | None
    call_min_ns: int | None
    call_p25_ns: float | None
    call_median_ns: float | None
    call_p75_ns: float | None
    call_max_ns: int | None
    delay_mean_ns: float | None
    delay_std_ns: float | None
    delay_min_ns: int | None
    delay_p25_ns: float | None
    delay_median_ns: float | None
    delay_p75_ns: float | None
    delay_max_ns: int | None
    activity_mean_ns: float | None
    activity_std_ns: float | None
    activity_min_ns: int | None
    activity_p25_ns: float | None
    activity_median_ns: float | None
    activity_p75_ns: float | None
    activity_max_ns: int | None


class LaunchSummaryRow(LaunchFigures):
    """All runtime API calls with the same name that launched activities."""

    call_name: str
    n_calls: int
    """Number of calls. A graph launch launches many activities."""
    call_total_ns: int
    count: int
    """Number of activities."""
    n_short: int
    """Calls that took longer than all activities they launched."""
    n_slow_calls: int
    """Calls longer than 50 us."""
    n_delayed: int
    """Calls whose first activity began more than 100 us after they returned."""


@view(
    LaunchSummaryRow,
    needs=(ACTIVITIES, CALLS, LAUNCHES),
    empty="No GPU activity of it was launched by a recorded call.",
    legend=((is_negative("delay_median_ns"), INSIDE_CALL), (_has_counts, _COUNTS)),
)
def launch_summary(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """Describe the launches of a window for each runtime API call that launches.

    Returns
    -------
    DataFrame
        A row for each call name, most time in calls first, with statistics of the calls, the delays
        and the activities.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("add", call=(0, 10), work=(12, 15)).read()
    >>> launch_summary(trace).select("call_name", "n_short", "delay_median_ns").row(0)
    ('cudaLaunchKernel', 1, 2000.0)
    """
    calls = (
        launch_times(trace, window, where=where)
        .group_by("call", "call_name", maintain_order=True)
        .agg(
            pl.col("is_slow_call").first(),
            call_ns=pl.col("call_duration_ns").first(),
            delay_ns=pl.col("delay_ns").min(),
            activity_ns=pl.col("duration_ns"),
        )
        .with_columns(
            pl.col("call_name").cast(pl.String),
            is_short=pl.col("activity_ns").list.sum() < pl.col("call_ns"),
            is_delayed=pl.col("delay_ns") > LONG_DELAY_NS,
        )
    )
    grouped = (
        calls.group_by("call_name")
        .agg(
            "call_ns",
            "delay_ns",
            pl.col("activity_ns").explode(),
            n_calls=pl.len().cast(pl.Int64),
            call_total_ns=pl.col("call_ns").sum(),
            count=pl.col("activity_ns").list.len().sum().cast(pl.Int64),
            n_short=pl.col("is_short").sum().cast(pl.Int64),
            n_slow_calls=pl.col("is_slow_call").sum().cast(pl.Int64),
            n_delayed=pl.col("is_delayed").sum().cast(pl.Int64),
        )
        .sort(-pl.col("call_total_ns"), "call_name")
    )
    figures = [described(name, grouped[name], prefix) for name, prefix in _DESCRIBED.items()]
    return pl.concat([grouped.drop(*_DESCRIBED), *figures], how="horizontal")
