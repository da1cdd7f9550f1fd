"""The device that functions are timed on: leased, idle, and read while it works."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from longpole.bench.run.conditions import Sampling
from longpole.bench.run.guard import Guard
from longpole.devices import Lease, child_changes, select, wait_until_idle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from longpole.devices import Busy

__all__ = ["DeviceInUse", "device_in_use", "guard_of"]


@dataclass(frozen=True, slots=True)
class DeviceInUse:
    """A device that is ours for a while: how a process is told to use it alone, and what it is.

    `sampling` makes what a guard is to read while it is used; each guard needs one of its own.
    """

    uuid: str
    lease: Lease
    changes: Mapping[str, str | None]
    facts: Mapping[str, Any]
    sampling: Callable[[], Sampling]


@contextmanager
def device_in_use(
    clock: str, busy: Busy, lock_mhz: int | None = None
) -> Iterator[DeviceInUse | None]:
    """Take the first visible device for a clock that times one; None for the processor.

    Parameters
    ----------
    clock
        As of `longpole bench time`.
    busy
        What to do with a device that somebody else uses.
    lock_mhz
        The clock to hold it at while a guard with its `sampling` lives.

    Raises
    ------
    DeviceError
        There is none, or somebody else uses it.
    """
    if clock == "cpu" or ":" in clock:
        yield None
        return
    ((device, provider),) = select(None).items()
    with Lease(device.uuid, parent=device.parent) as lease:
        lease.acquire()
        sampling = partial(Sampling, device, provider, lock_mhz)
        try:
            wait_until_idle(device, provider, busy)
            changes = child_changes(device, os.environ)
            settings = {} if provider is None else provider.settings(device)
            facts = {"device": device.to_dict(), "settings": settings}
            yield DeviceInUse(device.uuid, lease, changes, facts, sampling)
        finally:
            lease.release()


def guard_of(device: DeviceInUse | None) -> tuple[Guard, Sampling]:
    """Start a guard that holds the lease of a device and reads how it is.

    Raises
    ------
    DeviceError
        The clock cannot be locked.
    """
    sampling = Sampling() if device is None else device.sampling()
    try:
        return Guard([] if device is None else device.lease.filenos(), sampling), sampling
    except BaseException:
        sampling.remove()
        raise
