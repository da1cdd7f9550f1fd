"""Table `launches`: launches with their calls, delays and activities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from longpole.tables.catalogue import ask_by, table
from longpole.tables.launch_summary import launch_summary
from longpole.tables.launch_times import launch_times

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_BY: Final[Mapping[str, Callable[..., pl.DataFrame]]] = {
    "activity": launch_times,
    "call": launch_summary,
}


@table(by=_BY)
def launches(
    trace: Trace,
    window: Window | None = None,
    *,
    by: Literal["activity", "call"] = "activity",
    where: pl.Expr | str | None = None,
    slow_call_ns: int | None = None,
    long_delay_ns: int | None = None,
) -> pl.DataFrame:
    """List the launches of a window, or describe them for each runtime API call.

    Parameters
    ----------
    by
        `"activity"` has a row for each GPU activity whose launch is known, in the order of the
        file; `"call"` one for each name of calls with statistics, most time in calls first.
    slow_call_ns, long_delay_ns
        Times from which a call is slow and a delay long, for `by="activity"`: 50 and 100 us by
        default.

    Raises
    ------
    ValueError
        `by` or the condition is invalid.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("add", call=(0, 10), work=(12, 15)).read()
    >>> launches(trace).select("delay_ns", "is_short", "is_slow_call").row(0)
    (2000, True, False)
    >>> launches(trace, by="call").select("call_name", "n_short", "delay_median_ns").row(0)
    ('cudaLaunchKernel', 1, 2000.0)
    """
    limits = {"slow_call_ns": slow_call_ns, "long_delay_ns": long_delay_ns}
    return ask_by(_BY, by, trace, window, where=where, **limits)
