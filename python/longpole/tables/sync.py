"""Table `sync`: which call or stream waited for which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl

from longpole.engine.windows import window_of
from longpole.formats.convert.flame import path_of
from longpole.rows.frames import frame_schema, typed
from longpole.rows.selection import matching
from longpole.tables.catalogue import table
from longpole.tables.needs import ACTIVITIES, CALLS
from longpole.words.data import Row

if TYPE_CHECKING:
    from longpole.engine.critical_path import CriticalPath
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace


class SyncRow(Row):
    """A wait of a call or stream."""

    source: int
    """The awaited event."""
    source_name: str | None
    source_external_id: int | None
    target: int
    """The waiting event."""
    target_name: str | None
    target_external_id: int | None
    kind: str
    evidence: Literal["order", "correlation", "recorded", "replayed", "inferred", "none"]
    waited: bool
    """Whether it had to wait."""
    on_path: bool
    """Whether the critical path follows the wait."""
    start_ns: int
    """Start of the waiting event."""
    duration_ns: int | None


@table(
    SyncRow,
    needs=(ACTIVITIES, CALLS),
    empty="No wait of a call or stream was recorded in it.",
)
def sync(
    trace: Trace,
    window: Window | None = None,
    *,
    where: pl.Expr | str | None = None,
    critical_path: CriticalPath | None = None,
) -> pl.DataFrame:
    """List which call or stream waited for which, in order of time.

    Parameters
    ----------
    where
        A condition on the columns of the result.
    critical_path
        The path, instead of that of the window.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> builder = TraceBuilder().launch("gemm", call=(0, 10), work=(10, 40))
    >>> trace = builder.call("cudaDeviceSynchronize", (12, 45)).read()
    >>> sync(trace).select("source_name", "target_name", "waited").row(0)
    ('gemm', 'cudaDeviceSynchronize', True)
    """
    if critical_path is None:
        window = window_of(trace, window)
        if window is None:
            return _no_rows()
        critical_path = path_of(trace, window)
    times = trace.events.select("start_ns", "duration_ns", target="event")
    waits = critical_path.sync_dependencies.join(times, on="target")
    return matching(waits.sort("start_ns", "target", "source"), where)


def _no_rows() -> pl.DataFrame:
    dtypes = {
        **dict.fromkeys(("source", "target"), pl.UInt32),
        **dict.fromkeys(("source_name", "target_name", "evidence"), pl.Categorical),
    }
    return typed(pl.DataFrame(schema={**frame_schema(SyncRow), **dtypes}))
