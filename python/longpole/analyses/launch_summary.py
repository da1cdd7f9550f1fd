"""Table `launch_summary`: how long launching took in a window, by runtime API call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.analyses.launch_times import launch_times
from longpole.analyses.statistics import described

if TYPE_CHECKING:
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["launch_summary"]

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


def launch_summary(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> pl.DataFrame:
    """Describe the launches of a window for each runtime API call that makes them.

    Parameters
    ----------
    trace
        The trace.
    window
        From `choose_window`; by default the window that it chooses without more.
    where
        A condition on the columns of `activities`.

    Returns
    -------
    DataFrame
        A row for each name of a call, the most frequent first: `call_name`, `count` of
        activities, `n_short` (the call took longer than the activity), `n_slow_calls` (above
        50 us), `n_delayed` (begun more than 100 us after the call returned), and for the
        duration of the calls, the delays, and the activities: `call_mean_ns`, ...,
        `delay_mean_ns`, ..., `activity_mean_ns`, ..., each with the figures of `kernels`.

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
