"""Counters of the AI cores of an Ascend device, which its tool writes next to the timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.formats.ascend.recorded import recorded_counters
from longpole.trace.counters import call_stacks

if TYPE_CHECKING:
    from longpole.trace.trace import Trace

_OPERATIONS: Final = ("cube_fops", "vector_fops")
"""Counters of floating-point operations."""


def counters_of(trace: Trace) -> pl.DataFrame:
    """Return the counters of kernels: those of the trace, else those of AI cores.

    A row of the tool belongs to the kernel of the same name that starts at the same nanosecond.
    """
    found = trace.counters_by_operator()
    counted = recorded_counters(trace.path) if found.is_empty() else None
    if counted is None:
        return found
    kernels = trace.events.filter(pl.col("kind") == "kernel").select(
        "event", "start_ns", name=pl.col("name").cast(pl.String)
    )
    rows = kernels.join(
        counted.unique(("name", "start_ns"), keep="none"), on=("name", "start_ns"), how="inner"
    ).join(trace.launches.select("event", "call"), on="event", how="left")
    stacks = call_stacks(trace, rows["call"])
    operations = [name for name in _OPERATIONS if name in counted.columns]
    flops = pl.sum_horizontal(operations) if operations else pl.lit(None)
    return (
        rows.join(stacks, on="call", how="left")
        .sort("start_ns", "event")
        .select(
            "event",
            pl.col("name").alias("kernel_name"),
            "call",
            pl.lit("start").alias("matched_by"),
            *counted.columns[2:],
            "op_stack",
            top_level_op=pl.col("op_stack").list.first(),
            bottom_level_op=pl.col("op_stack").list.last(),
            flops=flops.cast(pl.Int64),
            dram_bytes=pl.lit(None, pl.Int64),
        )
    )
