"""The device that functions are timed on: leased, idle, and read while it works."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from longpole.devices import Lease, child_changes, discover, select, wait_until_idle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from longpole.devices import Busy, Reading

__all__ = ["DeviceInUse", "device_in_use", "reader_of"]


@dataclass(frozen=True, slots=True)
class DeviceInUse:
    """A device that is ours for a while, how a process is told to use it alone, and what it is."""

    uuid: str
    lease: Lease
    changes: Mapping[str, str | None]
    facts: Mapping[str, Any]


@contextmanager
def device_in_use(clock: str, busy: Busy) -> Iterator[DeviceInUse | None]:
    """Take the first visible device for a clock that times one; None for the processor.

    Raises
    ------
    DeviceError
        There is none, or somebody else uses it.
    """
    if clock == "cpu":
        yield None
        return
    ((device, provider),) = select(None).items()
    with Lease(device.uuid) as lease:
        lease.acquire()
        try:
            wait_until_idle(device, provider, busy)
            changes = child_changes(device, os.environ)
            yield DeviceInUse(device.uuid, lease, changes, device.to_dict())
        finally:
            lease.release()


def reader_of(uuid: str | None) -> Callable[[], Reading] | None:
    """Give what reads the state of a device; None where that takes long or is not possible."""
    found = {device.uuid: (device, provider) for device, provider in discover().items()}
    device, provider = found.get(uuid or "", (None, None))
    if device is None or provider is None or not provider.reads_fast:
        return None
    return partial(provider.read, device)
