"""Table `copies`: bytes, time and bandwidth of memcpys and memsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from longpole.tables.catalogue import ask_by, table
from longpole.tables.copy_bandwidth import copy_bandwidth
from longpole.tables.copy_summary import copy_summary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_BY: Final[Mapping[str, Callable[..., pl.DataFrame]]] = {
    "direction": copy_summary,
    "time": copy_bandwidth,
}


@table(by=_BY)
def copies(
    trace: Trace,
    window: Window | None = None,
    *,
    by: Literal["direction", "time"] = "direction",
    where: pl.Expr | str | None = None,
) -> pl.DataFrame:
    """Sum the memcpys and memsets of a window, or list the changes of their bandwidth.

    Parameters
    ----------
    by
        `"direction"` has a row for each device and direction, `"time"` one for each change of the
        bandwidth. Copies whose bandwidth is not known do not change it.
    where
        A condition on the columns of `activities`, `direction`, `bytes` and `bandwidth_gb_per_s`.

    Raises
    ------
    ValueError
        `by` or the condition is invalid.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().event(
    ...     ph="X", cat="gpu_memcpy", name="Memcpy HtoD (Pageable -> Device)", pid=0, tid=7,
    ...     ts=0, dur=2, args={"device": 0, "stream": 7, "bytes": 8000},
    ... )
    >>> copies(builder.read()).select("name", "count", "bytes", "bandwidth_gb_per_s").row(0)
    ('Memcpy HtoD', 1, 8000, 4.0)
    >>> copies(builder.read(), by="time").select("time_ns", "bandwidth_gb_per_s").rows()
    [(0, 4.0), (2000, 0.0)]
    """
    return ask_by(_BY, by, trace, window, where=where)
