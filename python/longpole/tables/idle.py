"""Table `idle`: idle time of devices by cause, and what the host did meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from longpole.tables.catalogue import ask_by, table
from longpole.tables.host_while_idle import host_while_idle
from longpole.tables.idle_time import idle_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_BY: Final[Mapping[str, Callable[..., pl.DataFrame]]] = {
    "cause": idle_time,
    "host": host_while_idle,
}


@table(by=_BY)
def idle(
    trace: Trace,
    window: Window | None = None,
    *,
    by: Literal["cause", "host"] = "cause",
    where: pl.Expr | str | None = None,
    short_ns: int | None = None,
) -> pl.DataFrame:
    """Split the idle time of devices by cause, or by what the host did meanwhile.

    Parameters
    ----------
    by
        `"cause"` has a row for each device and stream and each cause, with statistics of the idle
        intervals; `"host"` one for each device and each event of the launching thread that ran
        while the device waited for a launch, most idle time first.
    where
        A condition on the columns of `activities`, for `by="cause"`; time in which none of these
        ran is idle.
    short_ns
        Maximum length of an interval before an already launched activity that counts as the usual
        pause between two activities, for `by="cause"`.

    Raises
    ------
    ValueError
        `by` or the condition is invalid.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().launch("gemm", call=(0, 1), work=(2, 10))
    >>> builder = builder.operator("aten::add", (20, 40))
    >>> trace = builder.launch("add", call=(30, 35), work=(40, 50)).read()
    >>> idle(trace).select("stream", "cause", "duration_ns").row(0)
    (None, 'waiting_for_launch', 30000)
    >>> idle(trace, by="host").select("name", "duration_ns").row(0)
    ('aten::add', 10000)
    """
    return ask_by(_BY, by, trace, window, where=where, short_ns=short_ns)
