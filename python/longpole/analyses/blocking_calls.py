"""Calls in which a thread of the host waited for a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.analyses.by_name import NameTime
from longpole.windows import choose_window

if TYPE_CHECKING:
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["BlockingCall", "blocking_calls"]

# Waits by name, of CUDA, HIP and their drivers; copies that return when they are done;
# and memory calls that wait for the device.
BLOCKING_NAMES: Final = (
    r"Synchronize"
    r"|^(cuda|hip)Mem(cpy|set)(2D|3D|To\w+|From\w+|Peer|WithStream)?(_v\d+|_ptds)?$"
    r"|^(cu|hip)Memcpy(HtoD|DtoH|DtoD|HtoA|AtoH)?(_v\d+|_ptds)?$"
    r"|^(cuda|hip)(Free|FreeHost|HostFree|HostUnregister|DeviceReset)$"
)


@dataclass(frozen=True, slots=True)
class BlockingCall(NameTime):
    """All blocking calls of one name within a window, on all threads together."""

    why: str


def blocking_calls(trace: Trace, window: Window | None = None) -> tuple[BlockingCall, ...]:
    """List the blocking calls of a window, the longest in total first.

    Besides the calls that always block, these are the asynchronous copies that returned
    only when their copy had ended, as those of pageable memory do.
    """
    window = window or choose_window(trace)
    if window is None:
        return ()
    call_end, work_end = (pl.col("start_ns") + pl.col("duration_ns"), pl.col("copy_end_ns"))
    copies = (
        trace.launches.select("event", "call")
        .drop_nulls()
        .join(trace.events.filter(pl.col("kind") == "copy"), on="event")
        .select(event="call", copy_end_ns=pl.col("start_ns") + pl.col("duration_ns"))
        .unique("event")
    )
    is_call = pl.col("kind").cast(pl.String).is_in(["runtime", "driver"])
    always = pl.col("name").str.contains(BLOCKING_NAMES)
    calls = trace.events.filter(is_call).with_columns(pl.col("name").cast(pl.String))
    blocking = (
        calls.join(copies, on="event", how="left", maintain_order="left")
        .with_columns(
            why=pl.when(always)
            .then(pl.lit("it waits for the device"))
            .when(work_end <= call_end)
            .then(pl.lit("it returned after its copy had ended"))
        )
        .filter(pl.col("why").is_not_null())
    )
    rows = (
        window.clip(blocking)
        .sort("inside_ns", "event", descending=[True, False])
        .group_by("name", maintain_order=True)
        .agg(
            count=pl.len(),
            duration_ns=pl.col("inside_ns").sum(),
            longest_ns=pl.col("inside_ns").first(),
            longest_event=pl.col("event").first(),
            why=pl.col("why").first(),
        )
        .sort("duration_ns", "name", descending=[True, False])
    )
    return tuple(BlockingCall(*row) for row in rows.iter_rows())
