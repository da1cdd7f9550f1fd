"""The GPU clock with torch as its device library, for CUDA and HIP."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.time.gpu_clock import GpuClock, GpuLibrary, flush_size_bytes
from longpole.bench.time.graph_capture import captured
from longpole.errors import DeviceError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.bench.time.clocks import Cache

__all__ = ["TorchClock", "flush_buffer", "torch_with_device"]

_NS_PER_MS: Final = 1e6


class TorchClock(GpuClock):
    """Device time on the current CUDA or HIP device of torch.

    Parameters
    ----------
    cache
        `cold`: before each call more bytes than the last cache holds are written. `hot`: the
        calls follow one another. `graph`: they are captured once and replayed, as one launch.

    Raises
    ------
    MissingDependencyError
        torch is not installed.
    DeviceError
        torch sees no device.
    """

    def __init__(self, cache: Cache) -> None:
        super().__init__(_TorchGpu(), cache)


class _TorchGpu(GpuLibrary):
    """The functions of torch that the clock needs."""

    def __init__(self) -> None:
        self._torch = torch = torch_with_device("timing on a device")
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        self.name = "hip" if torch.version.hip else "cuda"
        self.device = properties.name
        self._flushed = flush_buffer(torch)

    def event(self) -> Any:
        return self._torch.cuda.Event(enable_timing=True)

    def record(self, event: Any) -> None:
        event.record()

    def is_done(self, event: Any) -> bool:
        return bool(event.query())

    def elapsed_ns(self, start: Any, stop: Any) -> float:
        elapsed_ms: float = start.elapsed_time(stop)
        return elapsed_ms * _NS_PER_MS

    def spin_cycles(self, cycles: int) -> None:
        self._torch.cuda._sleep(cycles)  # noqa: SLF001 - no other

    def flush(self) -> None:
        self._flushed.zero_()

    def synchronize(self) -> None:
        self._torch.cuda.synchronize()

    def capture(self, function: Callable[[], object], n_calls: int) -> Callable[[], object]:
        return captured(self._torch, function, n_calls)


def flush_buffer(torch: Any) -> Any:
    """Allocate more bytes on the current device than its last-level cache holds."""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    n_bytes = flush_size_bytes(getattr(properties, "L2_cache_size", 0))
    return torch.empty(n_bytes, dtype=torch.int8, device="cuda")


def torch_with_device(purpose: str) -> Any:
    """Import torch, and check that it sees a device.

    Raises
    ------
    MissingDependencyError
        torch is not installed.
    DeviceError
        torch sees no device.
    """
    try:
        torch = import_module("torch")
    except ImportError as error:
        message = f"{purpose} needs torch\nhint: pip install 'longpole[torch]'"
        raise MissingDependencyError(message) from error
    if not torch.cuda.is_available():
        message = "torch sees no device to time on"
        raise DeviceError(message)
    return torch
