"""Warnings below a table about values that cannot be right, or whose kernels are unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.tables.catalogue import view_of
from longpole.tables.device_peaks import device_peaks
from longpole.tables.findings import IMPOSSIBLE_TIMES
from longpole.trace.sweeps import event_warnings

if TYPE_CHECKING:
    import polars as pl

    from longpole.trace.trace import Trace

_TIMES: Final = (
    "The recorded times of GPU activities cannot be right (see `longpole check`), and the table "
    "rests on them."
)


def has_impossible_times(trace: Trace) -> bool:
    """Whether the recorded times of some GPU activities cannot be right."""
    return any(code in IMPOSSIBLE_TIMES for code, *_ in event_warnings(trace))


def impossible_values(
    name: str, trace: Trace, by: str | None = None, rows: pl.DataFrame | None = None
) -> list[str]:
    """Return which values of a table are impossible, and why they may be shown all the same.

    Parameters
    ----------
    name
        The table.
    trace
        The trace.
    by
        Its view.
    rows
        Its rows, if it is a frame.

    Examples
    --------
    >>> from longpole.testing import TraceBuilder
    >>> impossible_values("kernels", TraceBuilder().read())
    []
    """
    told = [] if name != "counters" else _of_counters(trace)
    told += [_TIMES] if not view_of(name, by).is_of_host and has_impossible_times(trace) else []
    if rows is not None and name == "copies":
        told += _above_bandwidth(trace, rows)
    return told


def _of_counters(trace: Trace) -> list[str]:
    from longpole.tables.counters import invalid_counters, unmatched_counters

    unmatched, invalid = unmatched_counters(trace), invalid_counters(trace)
    told = [] if unmatched is None else [f"{unmatched}. Their operators are unknown."]
    return told if invalid is None else [*told, f"{invalid}. These values are unknown."]


def _above_bandwidth(trace: Trace, rows: pl.DataFrame) -> list[str]:
    """Compare the bandwidth of copies with that of the memory that they read."""
    import polars as pl

    largest = [name for name in ("max", "bandwidth_gb_per_s") if name in rows.columns]
    told = []
    for device, peaks in device_peaks(trace, None).items():
        if peaks.bandwidth is None:
            continue
        # A memcpy within a device reads and writes each byte.
        within, limit = pl.col("name").str.contains("DtoD"), peaks.bandwidth
        limits = pl.when(within).then(limit / 2).otherwise(limit)
        of_device = rows.filter(pl.col("device").eq_missing(device))
        above = of_device.filter(pl.max_horizontal(*largest) > limits)
        names = ", ".join(above["name"].unique(maintain_order=True))
        if names:
            told.append(
                f"{names} of device {device} exceeds its memory bandwidth ({limit:,.0f} GB/s, half "
                "within the device): the data was in a cache, or the recorded time is too short."
            )
    return told
