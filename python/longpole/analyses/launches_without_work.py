"""The calls that launched work which a trace does not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longpole.windows import launching_calls

if TYPE_CHECKING:
    from longpole.trace import Trace

__all__ = ["launches_without_work"]


def launches_without_work(trace: Trace) -> pl.DataFrame:
    """List the calls that launched work which the trace does not hold."""
    launched = pl.col("event").is_in(trace.launches["call"].implode())
    # Where a runtime call stands on top of the driver's, one of the two has the work.
    having = trace.events.filter(launched).select("parent", "event")
    related = pl.concat([having["parent"].drop_nulls(), having["event"]]).implode()
    return trace.events.filter(
        pl.col("event").is_in(launching_calls(trace).implode()),
        ~pl.col("event").is_in(related),
        ~pl.col("parent").is_in(related).fill_null(value=False),
    )
