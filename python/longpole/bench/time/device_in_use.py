"""The device on which functions are timed: leased, idle, and sampled during the run."""

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
    """A leased device: how a process uses only this one, and its model.

    `sampling` creates the configuration of a guard's sampler; each guard needs its own.
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
    """Lease the first visible device for a clock that times one; None for the processor.

    Parameters
    ----------
    clock
        As for `longpole bench time`.
    busy
        What to do if another program uses the device.
    lock_mhz
        Clock to lock while a guard with its `sampling` runs.

    Raises
    ------
    DeviceError
        There is no device, or another program uses it.
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
    """Start a guard that holds the lease of a device and samples its state.

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
