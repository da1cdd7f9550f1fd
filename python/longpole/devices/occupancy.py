"""Whether somebody else uses a device, and what to do then."""

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


class DeviceBusyError(DeviceError):
    """Somebody else uses the device: what is measured on it would mean little."""


def wait_until_idle(
    device: Device,
    provider: Provider | None,
    busy: Busy,
    given_up: Callable[[], bool] = lambda: False,
) -> None:
    """Refuse a device that somebody else uses, or wait for it, or take it all the same.

    A processor is always used by somebody, and is not looked at; neither is a device whose
    state takes long to read.

    Raises
    ------
    DeviceBusyError
        It is busy, and `busy` says to refuse it.
    """
    if busy == "allow" or provider is None or not provider.reads_fast or device.vendor == "cpu":
        return
    while reason := provider.read(device).busy:
        if busy == "refuse":
            message = (
                f"device {device.uuid} is busy: {reason}\n"
                "hint: --busy wait waits for it, --busy allow measures all the same"
            )
            raise DeviceBusyError(message)
        if given_up():
            return
        time.sleep(POLL_S)
