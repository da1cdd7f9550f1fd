"""Measures how each device spent a window, and why it was idle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.engine.windows import window_of

if TYPE_CHECKING:
    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

SHORT_NS: Final = 30_000
"""Maximum length of a gap before an already launched activity that counts as a pause."""


@dataclass(frozen=True, slots=True)
class BusyTime:
    """How long a stream, or a whole device (`stream` is None), was busy, by type of activity.

    Compute, communication, copy and idle sum to the window; time in which several ran counts for
    the first of them. The totals count all time of a type, whether or not others ran.
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
    """Causes of a device's idle time, as in `idle`; all but `host_ns` sum to the idle time."""

    waiting_for_launch_ns: int | None
    """The next activity had not been launched; includes the pause after its launch if below 30
    µs."""
    between_activities_ns: int | None
    """The next activity had been launched, and the gap is shorter than 30 µs."""
    other_wait_ns: int | None
    """The next activity had been launched but waited longer: for another stream, or for a free
    device."""
    after_last_ns: int
    """No further activity follows in the window."""
    unlinked_ns: int
    """The launch of the next activity is not known."""
    host_ns: int | None
    """Part of the first three before the launching call returned."""
    reason: str | None = None
    """Reason why the causes are not known; None if they are."""


_OF_LAUNCHED: Final = ("waiting_for_launch", "between_activities", "other_wait")


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """One device in a window."""

    device: int | None
    name: str | None
    whole: BusyTime
    streams: tuple[BusyTime, ...]
    idle: IdleTime
    launch_bound_share: float | None
    """`idle.host_ns` as a fraction of the window: upper bound of the gain from faster launches."""


def device_times(trace: Trace, window: Window | None = None) -> tuple[DeviceTime, ...]:
    """Measure the time of each device with GPU activities.

    By default in the window that `choose_window` selects.
    """
    window = window_of(trace, window)
    if window is None:
        return ()
    rows: dict[int | None, list[BusyTime]] = {}
    for row in trace.core.busy(window.span).to_dicts():
        rows.setdefault(row.pop("device"), []).append(BusyTime(**row))
    idle: dict[int | None, list[tuple[str, int, int | None]]] = {}
    for device, cause, duration_ns, host_ns in trace.core.idle(*window.span, SHORT_NS):
        idle.setdefault(device, []).append((cause, duration_ns, host_ns))
    names = trace.device_names
    return tuple(
        _device(
            device,
            None if device is None else names.get(device),
            busy,
            _idle(idle.get(device, [])),
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


def _idle(causes: list[tuple[str, int, int | None]]) -> IdleTime:
    """Collect the idle time of one device by cause."""
    times = {cause: duration_ns for cause, duration_ns, _ in causes}
    after_last_ns, unlinked_ns = times.get("after_last", 0), times.get("unlinked", 0)
    if unlinked_ns and not times.keys() & {*_OF_LAUNCHED}:
        reason = "no work after a gap is linked to the call that launched it"
        return IdleTime(None, None, None, after_last_ns, unlinked_ns, None, reason)
    waiting_ns, between_ns, other_ns = (times.get(cause, 0) for cause in _OF_LAUNCHED)
    host_ns = sum(ns or 0 for *_, ns in causes)
    return IdleTime(waiting_ns, between_ns, other_ns, after_last_ns, unlinked_ns, host_ns)
