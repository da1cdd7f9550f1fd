"""What each device did in a window, and why it was idle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from longpole.windows import choose_window

if TYPE_CHECKING:
    from longpole.trace import Trace
    from longpole.windows import Window

__all__ = ["BusyTime", "DeviceTime", "IdleTime", "device_times"]


@dataclass(frozen=True, slots=True)
class BusyTime:
    """How long a stream, or a device as a whole (`stream` is None), was busy, and with what.

    Compute, communication, copy and idle sum to the window; an instant at which several
    ran counts for the first of them. The totals are those whatever else ran.
    """

    stream: int | None
    count: int
    busy_ns: int
    compute_ns: int
    communication_ns: int
    copy_ns: int
    idle_ns: int
    communication_total_ns: int
    copy_total_ns: int


@dataclass(frozen=True, slots=True)
class IdleTime:
    """Why nothing ran on a device; the four parts sum to its idle time."""

    host_ns: int | None
    """The call that launches the next work had not returned: the device is launch-bound."""
    launched_ns: int | None
    """The next work was launched and had not begun."""
    after_last_ns: int
    """No work follows in the window."""
    unlinked_ns: int
    """The call of the next work is not known."""
    reason: str | None = None
    """Why the first two are not known, where they are not."""


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """One device in a window."""

    device: int | None
    name: str | None
    whole: BusyTime
    streams: tuple[BusyTime, ...]
    idle: IdleTime
    launch_bound_share: float | None
    """`idle.host_ns` of the window: what faster launching could win at most."""


def device_times(trace: Trace, window: Window | None = None) -> tuple[DeviceTime, ...]:
    """Measure every device that the trace has work on, by number.

    By default in the window that `choose_window` takes.
    """
    window = window or choose_window(trace)
    if window is None:
        return ()
    rows: dict[int | None, list[BusyTime]] = {}
    for row in trace.busy(window.start_ns, window.end_ns).iter_rows(named=True):
        rows.setdefault(row.pop("device"), []).append(BusyTime(**row))
    gaps = trace.gaps(window.start_ns, window.end_ns)
    names = dict(trace.devices.select("device", "name").iter_rows())
    return tuple(
        _device(device, names.get(device), busy, _idle(gaps, device), window)
        for device, busy in rows.items()
    )


def _device(
    device: int | None, name: str | None, busy: list[BusyTime], idle: IdleTime, window: Window
) -> DeviceTime:
    whole, *streams = busy
    launch_bound_share = None
    if idle.host_ns is not None and window.duration_ns:
        launch_bound_share = idle.host_ns / window.duration_ns
    return DeviceTime(device, name, whole, tuple(streams), idle, launch_bound_share)


def _idle(gaps: pl.DataFrame, device: int | None) -> IdleTime:
    has_next, has_call = pl.col("next").is_not_null(), pl.col("host_ns").is_not_null()
    duration = pl.col("duration_ns")
    sums: dict[str, Any] = (
        gaps.filter(pl.col("device").eq_missing(device))
        .select(
            host_ns=pl.col("host_ns").sum(),
            launched_ns=(duration - pl.col("host_ns")).sum(),
            after_last_ns=duration.filter(~has_next).sum(),
            unlinked_ns=duration.filter(has_next & ~has_call).sum(),
            n_linked=has_call.sum(),
        )
        .row(0, named=True)
    )
    if not sums.pop("n_linked") and sums["unlinked_ns"]:
        reason = "no work after a gap is linked to the call that launched it"
        return IdleTime(**(sums | {"host_ns": None, "launched_ns": None}), reason=reason)
    return IdleTime(**sums)
