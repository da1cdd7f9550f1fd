"""The GPU clock on cupy, CUDA or ROCm."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.time.gpu_clock import GpuClock, Mode, cycles_per_ns, flush_size_bytes
from longpole.errors import DeviceError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CupyClock", "CupyGpu"]

_NS_PER_MS: Final = 1e6
_SPIN: Final = """
extern "C" __global__ void longpole_spin(long long cycles) {
    long long begin = clock64();
    while (clock64() - begin < cycles) { }
}
"""


class CupyClock(GpuClock):
    """Device time on the current device of cupy, on its current stream.

    Parameters
    ----------
    cache
        As of `GpuClock`.

    Raises
    ------
    MissingDependencyError
        cupy is not installed.
    DeviceError
        cupy sees no device.
    """

    def __init__(self, cache: Mode) -> None:
        super().__init__(CupyGpu(), cache)


class CupyGpu:
    """What the clock needs of cupy."""

    def __init__(self) -> None:
        self._cupy = cupy = _import_cupy()
        runtime = cupy.cuda.runtime
        properties = runtime.getDeviceProperties(cupy.cuda.Device().id)
        self.name = "hip" if runtime.is_hip else "cuda"
        self.device: str = properties["name"].decode()
        n_bytes = flush_size_bytes(properties.get("l2CacheSize", 0))
        self._flushed = cupy.empty(n_bytes, dtype="int8")
        self._kernel = cupy.RawKernel(_SPIN, "longpole_spin")

    def now_ns(self) -> int:
        """Tell the time of the host."""
        return time.perf_counter_ns()

    def event(self) -> CupyEvent:
        """Make a mark."""
        return CupyEvent(self._cupy, self._cupy.cuda.Event())

    def spin(self, duration_ns: float) -> None:
        """Queue a kernel that does nothing for so long."""
        self._spin_cycles(round(duration_ns * self._cycles_per_ns))

    def flush(self) -> None:
        """Queue a write of more bytes than the last cache holds."""
        self._flushed.fill(0)

    def synchronize(self) -> None:
        """Wait until the device is idle."""
        self._cupy.cuda.Device().synchronize()

    def capture(self, function: Callable[[], object], n_calls: int) -> Callable[[], object]:
        """Give a function that replays so many calls as one graph."""
        stream = self._cupy.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            for _ in range(n_calls):
                function()
            graph = stream.end_capture()
        replay: Callable[[], object] = graph.launch
        return replay

    def _spin_cycles(self, cycles: int) -> None:
        self._kernel((1,), (1,), (cycles,))

    @cached_property
    def _cycles_per_ns(self) -> float:
        return cycles_per_ns(self, self._spin_cycles)


@dataclass(frozen=True, slots=True)
class CupyEvent:
    """An event of cupy, with times in nanoseconds."""

    cupy: Any
    event: Any

    def record(self) -> None:
        """Queue the mark on the current stream."""
        self.event.record()

    def query(self) -> bool:
        """Say whether the device has come to it."""
        return bool(self.event.done)

    def elapsed_ns(self, end: CupyEvent) -> float:
        """Give the time from this mark to a later one."""
        elapsed_ms: float = self.cupy.cuda.get_elapsed_time(self.event, end.event)
        return elapsed_ms * _NS_PER_MS


def _import_cupy() -> Any:
    try:
        cupy = import_module("cupy")
    except ImportError as error:
        message = "--clock cupy needs cupy\nhint: pip install cupy-cuda12x"
        raise MissingDependencyError(message) from error
    try:
        n_devices = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        message = f"cupy sees no device to time on: {error}"
        raise DeviceError(message) from error
    if not n_devices:
        message = "cupy sees no device to time on"
        raise DeviceError(message)
    return cupy
