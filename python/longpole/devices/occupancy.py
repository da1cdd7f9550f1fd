"""Whether another program uses a device, and what to do then."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from longpole.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.devices.protocol import Device, Provider

__all__ = ["Busy", "DeviceBusyError", "wait_until_idle"]

Busy: TypeAlias = Literal["refuse", "wait", "allow"]

POLL_S: Final = 0.5

# The utilisation is that of the last second, and takes as long to fall after a program has ended.
SETTLE_S: Final = 2.0


class DeviceBusyError(DeviceError):
    """Another program uses the device: measurements on it would mean little."""


def wait_until_idle(
    device: Device,
    provider: Provider | None,
    busy: Busy,
    given_up: Callable[[], bool] = lambda: False,
) -> None:
    """Check whether another program uses a device: refuse it, wait for it, or use it anyway.

    Not checked are processors, which are always in use, and devices whose state takes long to read.
    A device without processes gets two seconds, since its utilisation is delayed.

    Raises
    ------
    DeviceBusyError
        The device is busy, and `busy` is `refuse`.
    """
    if busy == "allow" or provider is None or not provider.reads_fast or device.vendor == "cpu":
        return
    deadline = time.monotonic() + SETTLE_S
    while reason := (reading := provider.read(device)).busy:
        if busy == "refuse" and (reading.compute_pids or time.monotonic() >= deadline):
            message = (
                f"device {device.uuid} is busy: {reason}\n"
                "hint: --busy wait waits for it, --busy allow measures all the same"
            )
            raise DeviceBusyError(message)
        if given_up():
            return
        time.sleep(POLL_S)
