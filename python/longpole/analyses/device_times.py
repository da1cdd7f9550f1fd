"""What each device did in a window, and why it was idle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.windows import window_of

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
    """The next work was launched and had not started."""
    after_last_ns: int
    """No work follows in the window."""
    unlinked_ns: int
    """The call of the next work is not known."""
    reason: str | None = None
    """Why the first two are not known, where they are not."""


_NEVER_IDLE: Final = IdleTime(0, 0, 0, 0)


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
    """Measure the time of each device with GPU activities.

    By default in the window that `choose_window` takes.
    """
    window = window_of(trace, window)
    if window is None:
        return ()
    start_ns, end_ns = window.start_ns, window.end_ns
    rows: dict[int | None, list[BusyTime]] = {}
    for row in trace.core.busy(start_ns, end_ns).to_dicts():
        rows.setdefault(row.pop("device"), []).append(BusyTime(**row))
    idle = {device: _idle(*sums) for device, *sums in trace.core.idle(start_ns, end_ns)}
    names = trace.device_names
    return tuple(
        _device(
            device,
            None if device is None else names.get(device),
            busy,
            idle.get(device, _NEVER_IDLE),
            window,
        )
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


def _idle(
    host_ns: int, launched_ns: int, after_last_ns: int, unlinked_ns: int, n_linked: int
) -> IdleTime:
    if not n_linked and unlinked_ns:
        reason = "no work after a gap is linked to the call that launched it"
        return IdleTime(None, None, after_last_ns, unlinked_ns, reason)
    return IdleTime(host_ns, launched_ns, after_last_ns, unlinked_ns)
