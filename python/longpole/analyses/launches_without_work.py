"""Launches whose GPU activity is missing from the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from longpole.trace import Trace

__all__ = ["launches_without_work"]


def launches_without_work(trace: Trace) -> pl.DataFrame:
    """List the launches whose GPU activity is not in the trace."""
    lost = pl.Series(trace.core.launches_without_work(), dtype=pl.UInt32)
    return trace.events.filter(pl.col("event").is_in(lost.implode()))
