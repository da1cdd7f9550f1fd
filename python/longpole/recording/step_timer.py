"""Times the steps that a profiler with a schedule leaves out, and writes the times to its trace.

For programs with a `torch.profiler.profile` of their own. Its schedule leaves steps out (`wait`);
these run as the program does without a profiler.
"""

from __future__ import annotations

import json
import time
import warnings
from importlib import import_module
from typing import Any, Final

from longpole.errors import RecordingWarning

_FEWEST: Final = 2
"""A smaller group of steps is not timed: waiting for the device would be a large part of it."""


def time_steps(profiler: Any, *, warm_up: int = 3, timed_steps: int = 5) -> StepTimer:
    """Time the steps that a profiler of PyTorch leaves out, and write the times to its trace.

    Parameters
    ----------
    profiler
        A `torch.profiler.profile` with a schedule whose `wait` leaves steps out before it records.
    warm_up
        Number of steps to skip at the start, in which programs compile and allocate.
    timed_steps
        Number of steps that are timed together; the device is idle before and after them.

    Returns
    -------
    StepTimer
        Call its `step` at the end of each step, in place of that of the profiler.

    Raises
    ------
    ValueError
        A number of steps is not positive.

    Warns
    -----
    RecordingWarning
        The profiler records before enough steps have run.

    Examples
    --------
    >>> import longpole
    >>> schedule = torch.profiler.schedule(wait=13, warmup=2, active=5)  # doctest: +SKIP
    >>> with torch.profiler.profile(schedule=schedule, ...) as profiler:  # doctest: +SKIP
    ...     timer = longpole.time_steps(profiler)
    ...     for batch in loader:
    ...         train(batch)
    ...         timer.step()
    """
    if timed_steps < 1 or warm_up < 0:
        message = "timed_steps must be at least 1, and warm_up at least 0"
        raise ValueError(message)
    return StepTimer(profiler, warm_up, timed_steps)


class StepTimer:
    """Times steps of a profiled program; `longpole.time_steps` makes it.

    Attributes
    ----------
    step_time_ns
        Mean duration of a step without the profiler, in ns, for each group of timed steps.
    """

    def __init__(self, profiler: Any, warm_up: int, timed_steps: int) -> None:
        self.step_time_ns: list[int] = []
        self._profiler = profiler
        self._n_left_out = warm_up
        self._timed_steps = timed_steps
        self._start_ns: int | None = None
        self._n_steps = 0
        self._is_written = False

    def step(self) -> None:
        """End a step of the program, and call `step` of the profiler."""
        is_next_idle = self._is_next_idle()
        if self._start_ns is not None:
            self._n_steps += 1
            if self._n_steps >= self._timed_steps or not is_next_idle:
                self._end_group(self._start_ns)
        elif self._is_idle():
            self._n_left_out -= 1
        self._profiler.step()  # may prepare or end a recording, which is not timed
        if is_next_idle and self._start_ns is None and self._n_left_out <= 0:
            _synchronize()
            self._start_ns = time.perf_counter_ns()
        self._write_once()

    def _end_group(self, start_ns: int) -> None:
        if self._n_steps >= min(_FEWEST, self._timed_steps):
            _synchronize()
            self.step_time_ns.append((time.perf_counter_ns() - start_ns) // self._n_steps)
        self._start_ns, self._n_steps = None, 0

    def _write_once(self) -> None:
        """Write the times so far to each trace when its recording begins."""
        if not self._action().startswith("RECORD"):
            self._is_written = False
        elif not self._is_written:
            self._is_written = True
            self._write()

    def _write(self) -> None:
        if not self.step_time_ns:
            message = (
                "no step was timed, because the profiler records too early\n"
                "hint: schedule(wait=13, ...) leaves 3 steps to warm up and 10 to time"
            )
            warnings.warn(message, RecordingWarning, stacklevel=4)
            return
        times = {"step_time_ns": {"before": self.step_time_ns, "after": []}}
        self._profiler.add_metadata_json("longpole", json.dumps(times))

    def _is_idle(self) -> bool:
        return self._action() == "NONE"

    def _is_next_idle(self) -> bool:
        return bool(self._profiler.schedule(self._profiler.step_num + 1).name == "NONE")

    def _action(self) -> str:
        return str(self._profiler.current_action.name)


def _synchronize() -> None:
    """Wait until each GPU that PyTorch uses is idle."""
    torch = import_module("torch")
    for name in ("cuda", "xpu"):
        device = getattr(torch, name, None)
        if device is not None and device.is_available() and device.is_initialized():
            device.synchronize()
