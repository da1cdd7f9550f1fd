"""What a device did in a window, as parts that sum to it: work, and idle time by cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from longpole.analyses.device_times import DeviceTime

__all__ = ["Part", "device_parts"]

Part = tuple[int, str, str]
"""Time in ns, its kind, and what it stands for."""

_BUSY: Final = (
    ("compute_ns", "kernel", "kernels"),
    ("communication_ns", "communication", "communication (not hidden by kernels)"),
    ("copy_ns", "copy", "memcpy and memset (not hidden by kernels)"),
)
_IDLE: Final = (
    ("waiting_for_launch_ns", "waiting for launch", "idle, waiting for the host to launch"),
    ("between_activities_ns", "idle", "idle between launched activities (under 30 µs)"),
    ("other_wait_ns", "waiting", "idle, launched work waits (30 µs or more)"),
    ("unlinked_ns", "unknown cause", "idle, cause unknown (launch not recorded)"),
    ("after_last_ns", "idle", "idle after the last activity"),
)


def device_parts(device: DeviceTime) -> list[Part]:
    """Divide the window of a device into the parts that took time."""
    times = [
        *((getattr(device.whole, name), kind, label) for name, kind, label in _BUSY),
        *((getattr(device.idle, name) or 0, kind, label) for name, kind, label in _IDLE),
    ]
    return [part for part in times if part[0]]
