"""Device time recorded by torch's profiler: CUPTI on NVIDIA devices, roctracer on AMD.

The profiler records start and end of every kernel, memcpy and memset, on any stream. The time of a
function is how long at least one of them ran: launches and gaps between kernels do not count, so
that they need not be hidden, and no stream is missed. Recording delays the start of kernels
slightly but does not slow them down.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.time.clocks import Steady
from longpole.bench.time.torch_clock import flush_buffer, torch_with_device
from longpole.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from longpole.bench.time.clocks import Cache

__all__ = ["CuptiClock"]

_NS_PER_US: Final = 1000.0


class CuptiClock(Steady):
    """Time that the kernels of a function take, from the records of torch's profiler.

    Parameters
    ----------
    cache
        `cold`: before each call more bytes than the last cache holds are written. `hot`: the
        calls follow one another.

    Raises
    ------
    MissingDependencyError
        torch is not installed.
    DeviceError
        torch sees no device, or its profiler cannot record one.
    """

    shortest_sample_ns = 200_000

    # NVIDIA devices have timestamps in steps of 32 ns; AMD's are finer.
    step_ns = 32.0

    def __init__(self, cache: Cache) -> None:
        if cache == "graph":
            message = "--clock cupti times kernels one by one: use --cache hot or cold"
            raise DeviceError(message)
        self.cache: Cache = cache
        self._torch = torch = _torch_with_profiler()
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        self.name = "roctracer" if torch.version.hip else "cupti"
        self.device: str = properties.name
        self._flushed = flush_buffer(torch)

    def now_ns(self) -> int:
        """Return the time of the host."""
        return time.perf_counter_ns()

    def time_ns(self, function: Callable[[], object], n_calls: int) -> float:
        """Call a function `n_calls` times, and return how long its kernels ran.

        Raises
        ------
        DeviceError
            The function launched nothing on the device.
        """
        if self.cache == "hot":
            return self._recorded_ns(function, n_calls)
        return sum(self._cold_ns(function) for _ in range(n_calls))

    def _cold_ns(self, function: Callable[[], object]) -> float:
        self._flushed.zero_()
        self._torch.cuda.synchronize()  # so that the profiler does not record it
        return self._recorded_ns(function, 1)

    def _recorded_ns(self, function: Callable[[], object], n_calls: int) -> float:
        profiler = self._torch.profiler
        with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as recorded:
            for _ in range(n_calls):
                function()
            self._torch.cuda.synchronize()
        intervals = [
            (event.time_range.start, event.time_range.end)
            for event in recorded.events()
            if event.device_type == self._torch.autograd.DeviceType.CUDA
            and not getattr(event, "is_user_annotation", False)
        ]
        if not intervals:
            message = "the function launched no GPU activity"
            raise DeviceError(message)
        return _NS_PER_US * _covered(intervals)


def _covered(intervals: Iterable[tuple[float, float]]) -> float:
    """Return the total length of the union of the intervals.

    Examples
    --------
    >>> _covered([(0, 4), (2, 6), (10, 11)])
    7.0
    """
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def _torch_with_profiler() -> Any:
    torch = torch_with_device("--clock cupti")
    if torch.profiler.ProfilerActivity.CUDA not in torch.profiler.supported_activities():
        message = "the profiler of this torch cannot record the device: use --clock torch"
        raise DeviceError(message)
    return torch
