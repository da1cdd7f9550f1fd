"""Processes that time something under a guard: how to start them, and how they ended."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.records.record import Outcome
from longpole.bench.run.guard import Order
from longpole.bench.run.judgement import signal_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.bench.run.guard import Ending
    from longpole.bench.time.device_in_use import DeviceInUse

__all__ = ["IMPORT_S", "order", "outcome_of", "worker_order"]

IMPORT_S: Final = 300.0
"""Time limit for imports and other preparation."""

_GRACE_S: Final = 1.0
_DRAIN_S: Final = 0.3


def order(argv: Sequence[str], env: Mapping[str, str], limit_s: float | None) -> Order:
    """Return the order for a process; `env` is its whole environment."""
    return Order(argv, env, None, limit_s, _GRACE_S, _DRAIN_S)


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
    given = {**os.environ, **path, **({} if device is None else device.changes)}
    env = {name: value for name, value in given.items() if value is not None}
    return order([sys.executable, "-m", "longpole.bench.time.worker", text], env, limit_s)


def outcome_of(ending: Ending) -> tuple[Outcome, str]:
    """Return the outcome and reason for a process that did not complete its task."""
    if ending.refused is not None:
        return Outcome.NOT_STARTED, ending.refused[1]
    if ending.stopped is not None:
        return Outcome.TIMEOUT, f"timed out after {ending.seconds or 0:.0f} s"
    if ending.signal is not None:
        return Outcome.SIGNAL, f"the process was ended by {signal_name(ending.signal)}"
    return Outcome.NONZERO, f"the process ended with exit status {ending.exit_code}"
