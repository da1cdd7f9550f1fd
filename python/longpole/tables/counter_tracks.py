"""Queue lengths and copy bandwidths as counter tracks for Perfetto."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from longpole.tables.catalogue import shared_parameters
from longpole.tables.copy_bandwidth import copy_bandwidth
from longpole.tables.queue_length import queue_length
from longpole.trace.sweeps import counters_for_perfetto

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace


@shared_parameters(needs_arguments=True)
def counter_tracks(
    trace: Trace, window: Window | None = None, *, where: pl.Expr | str | None = None
) -> bytes:
    """Write queue lengths and copy bandwidths as counter tracks of a Perfetto trace.

    Parameters
    ----------
    trace
        The trace, read with the default `args` for the bandwidth of copies.

    Returns
    -------
    bytes
        Packets of a Perfetto trace, with a track for each stream and each direction of
        copying; `CriticalPath.to_perfetto` takes them as `counters`.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> trace = TraceBuilder().launch("gemm", call=(0, 1), work=(10, 20)).read()
    >>> b"queue length: device 0, stream 7" in counter_tracks(trace)
    True
    """
    queues = queue_length(trace, window, where=where)
    copies = copy_bandwidth(trace, window, where=where)
    return counters_for_perfetto(
        [
            *_tracks(queues, "queue length: device {}, stream {}", "stream", "queue_length"),
            *_tracks(copies, "copies (GB/s): device {}, {}", "name", "bandwidth_gb_per_s"),
        ]
    )


def _tracks(
    series: pl.DataFrame, title: str, place: str, value: str
) -> Iterator[tuple[str, pl.Series, pl.Series]]:
    """Split a series by stream or device; of values at the same time, the last one is used."""
    last = series.group_by("device", place, "time_ns", maintain_order=True).last()
    for key, rows in last.group_by("device", place, maintain_order=True):
        yield title.format(*key), rows["time_ns"], rows[value].cast(pl.Float64)
