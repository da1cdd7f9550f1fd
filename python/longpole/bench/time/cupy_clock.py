"""The GPU clock on cupy, CUDA or ROCm."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.time.gpu_clock import SPIN_SOURCE, GpuClock, GpuLibrary, flush_size_bytes
from longpole.errors import DeviceError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.bench.time.clocks import Cache

__all__ = ["CupyClock"]

_NS_PER_MS: Final = 1e6


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

    def __init__(self, cache: Cache) -> None:
        super().__init__(_CupyGpu(), cache)


class _CupyGpu(GpuLibrary):
    """What the clock needs of cupy."""

    def __init__(self) -> None:
        self._cupy = cupy = _import_cupy()
        runtime = cupy.cuda.runtime
        properties = runtime.getDeviceProperties(cupy.cuda.Device().id)
        self.name = "hip" if runtime.is_hip else "cuda"
        self.device = properties["name"].decode()
        n_bytes = flush_size_bytes(properties.get("l2CacheSize", 0))
        self._flushed = cupy.empty(n_bytes, dtype="int8")
        self._kernel = cupy.RawKernel(SPIN_SOURCE, "longpole_spin")

    def event(self) -> Any:
        return self._cupy.cuda.Event()

    def record(self, event: Any) -> None:
        event.record()

    def is_done(self, event: Any) -> bool:
        return bool(event.done)

    def elapsed_ns(self, start: Any, stop: Any) -> float:
        elapsed_ms: float = self._cupy.cuda.get_elapsed_time(start, stop)
        return elapsed_ms * _NS_PER_MS

    def spin_cycles(self, cycles: int) -> None:
        self._kernel((1,), (1,), (cycles,))

    def flush(self) -> None:
        self._flushed.fill(0)

    def synchronize(self) -> None:
        self._cupy.cuda.Device().synchronize()

    def capture(self, function: Callable[[], object], n_calls: int) -> Callable[[], object]:
        stream = self._cupy.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            for _ in range(n_calls):
                function()
            graph = stream.end_capture()
        replay: Callable[[], object] = graph.launch
        return replay


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
