"""Processes that time something under a guard: on which device, how to start, and how they ended.

The device is leased, idle, and sampled during the run.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.records.record import Outcome
from longpole.bench.run.conditions import Sampling
from longpole.bench.run.guard import Guard, Order
from longpole.bench.run.output import signal_name
from longpole.devices import Lease, child_changes, select, wait_until_idle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from longpole.bench.run.guard import Ending
    from longpole.devices import Busy


@dataclass(frozen=True, slots=True)
class DeviceInUse:
    """A leased device: the variables that make only this one visible, and its model.

    `sampling` creates the configuration of a guard's sampler; each guard needs its own.
    """

    uuid: str
    lease: Lease
    changes: Mapping[str, str | None]
    facts: Mapping[str, Any]
    sampling: Callable[[], Sampling]


@contextmanager
def device_in_use(
    clock: str, busy: Busy | None, lock_mhz: int | None = None
) -> Iterator[DeviceInUse | None]:
    """Lease the first visible device, if a clock times one or the caller asks for it; else None.

    Commands and the clocks of users may use a device or not: they get one if `busy` or `lock_mhz`
    is given.

    Parameters
    ----------
    clock
        As for `longpole bench time`.
    busy
        What to do if another program uses the device; None for `refuse`.
    lock_mhz
        Clock to lock while a guard with its `sampling` runs.

    Raises
    ------
    DeviceError
        There is no device, or another program uses it.
    """
    if (clock == "cpu" or ":" in clock) and busy is None and lock_mhz is None:
        yield None
        return
    ((device, provider),) = select(None).items()
    with Lease(device.uuid, parent=device.parent) as lease:
        lease.acquire()
        sampling = partial(Sampling, device, provider, lock_mhz)
        try:
            wait_until_idle(device, provider, busy or "refuse")
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


IMPORT_S: Final = 300.0
"""Time limit for imports and other preparation."""

_GRACE_S: Final = 1.0
_DRAIN_S: Final = 0.3


def order(
    argv: Sequence[str], env: Mapping[str, str], limit_s: float | None, folder: str | None = None
) -> Order:
    """Return the order for a process; `env` is its whole environment."""
    return Order(argv, env, folder, limit_s, _GRACE_S, _DRAIN_S)


def worker_order(
    wanted: Mapping[str, Any], limit_s: float | None, device: DeviceInUse | None = None
) -> Order:
    """Return the order for a worker that times functions, with this process's module path.

    Parameters
    ----------
    wanted
        Its configuration, as for `worker.main`; `path` is added.
    limit_s
        Its time limit.
    device
        The only device that it should see.
    """
    text = json.dumps({**wanted, "path": sys.path})
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    argv = [sys.executable, "-m", "longpole.bench.time.worker", text]
    return order(argv, environment_with(device, path), limit_s)


def environment_with(
    device: DeviceInUse | None, more: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return this process's environment for a child that should see only one device."""
    changes = {} if device is None else device.changes
    given = {**os.environ, **(more or {}), **changes}
    return {name: value for name, value in given.items() if value is not None}


def outcome_of(ending: Ending) -> tuple[Outcome, str]:
    """Return the outcome and reason for a process that did not complete its task."""
    if ending.refused is not None:
        return Outcome.NOT_STARTED, ending.refused[1]
    if ending.stopped == "cancel":
        return Outcome.CANCELLED, "cancelled"
    if ending.stopped == "limit":
        return Outcome.TIMEOUT, f"timed out after {ending.limit_s:g} s"
    if ending.signal is not None:
        return Outcome.SIGNAL, f"the process was ended by {signal_name(ending.signal)}"
    return Outcome.NONZERO, f"the process ended with exit status {ending.exit_code}"
