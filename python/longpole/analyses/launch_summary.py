"""Table `launch_summary`: launch times of a window, by runtime API call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import polars as pl

from longpole.analyses.launch_times import launch_times
from longpole.analyses.parameters import shared_parameters
from longpole.analyses.statistics import described
from longpole.data import Row

if TYPE_CHECKING:
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["LaunchSummaryRow", "launch_summary"]

_FLAGS: Final = {
    "n_short": "is_short",
    "n_slow_calls": "is_slow_call",
    "n_delayed": "is_long_delay",
}


_DESCRIBED: Final = {
    "call_duration_ns": "call_",
    "delay_ns": "delay_",
    "duration_ns": "activity_",
}


class LaunchFigures(Row):
    """The figures of calls, of delays, and of activities."""

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
    """The runtime API calls of one name that launched activities."""

    call_name: str
    count: int
    """Number of activities."""
    n_short: int
    """Activities whose call took longer than the activity."""
    n_slow_calls: int
    """Calls above 50 us."""
    n_delayed: int
    """Activities that began more than 100 us after the call returned."""


@shared_parameters()
def launch_summary(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> Annotated[pl.DataFrame, LaunchSummaryRow]:
    """Describe the launches of a window for each runtime API call that makes them.

    Returns
    -------
    DataFrame
        A row for each name of a call, the most frequent first, with the figures of the calls,
        of the delays, and of the activities.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("add", call=(0, 10), work=(12, 15)).read()
    >>> launch_summary(trace).select("call_name", "n_short", "delay_median_ns").row(0)
    ('cudaLaunchKernel', 1, 2000.0)
    """
    grouped = (
        launch_times(trace, window, where=where)
        .group_by("call_name")
        .agg(
            *_DESCRIBED,
            count=pl.len().cast(pl.Int64),
            **{name: pl.col(flag).sum().cast(pl.Int64) for name, flag in _FLAGS.items()},
        )
        .with_columns(pl.col("call_name").cast(pl.String))
        .sort("count", "call_name", descending=[True, False])
    )
    figures = [described(name, grouped[name], prefix) for name, prefix in _DESCRIBED.items()]
    return pl.concat([grouped.drop(*_DESCRIBED), *figures], how="horizontal")
