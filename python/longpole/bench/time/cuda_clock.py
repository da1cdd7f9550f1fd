"""The GPU clock on NVIDIA's own binding, cuda-python, for functions that launch by themselves.

The binding has no current stream: work is timed on the default stream, on which a function has to
launch. That stream cannot be captured, so there are no graphs here.
"""

from __future__ import annotations

import ctypes
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NoReturn

from longpole.bench.time.gpu_clock import SPIN_SOURCE, GpuClock, GpuLibrary, flush_size_bytes
from longpole.errors import DeviceError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.bench.time.clocks import Cache

__all__ = ["CudaClock"]

_NS_PER_MS: Final = 1e6
_DEFAULT_STREAM: Final = 0


class CudaClock(GpuClock):
    """Device time on the current CUDA device, on the default stream.

    Parameters
    ----------
    cache
        `cold` or `hot`.

    Raises
    ------
    MissingDependencyError
        cuda-python is not installed.
    DeviceError
        There is no device, or the binding reports an error.
    """

    def __init__(self, cache: Cache) -> None:
        super().__init__(_CudaGpu(), cache)


class _CudaGpu(GpuLibrary):
    """What the clock needs of cuda-python."""

    name = "cuda"

    def __init__(self) -> None:
        self._runtime = runtime = _bindings("runtime")
        number = self._ask(runtime.cudaGetDevice())
        properties = self._ask(runtime.cudaGetDeviceProperties(number))
        self.device = _text(properties.name)
        n_bytes = flush_size_bytes(properties.l2CacheSize)
        self._n_bytes = n_bytes
        self._flushed = self._ask(runtime.cudaMalloc(n_bytes))

    def event(self) -> Any:
        return self._ask(self._runtime.cudaEventCreate())

    def spin_cycles(self, cycles: int) -> None:
        arguments = ((cycles,), (ctypes.c_longlong,))
        launch = self._driver.cuLaunchKernel
        self._ask(launch(self._kernel, 1, 1, 1, 1, 1, 1, 0, _DEFAULT_STREAM, arguments, 0))

    def flush(self) -> None:
        stream = _DEFAULT_STREAM
        self._ask(self._runtime.cudaMemsetAsync(self._flushed, 0, self._n_bytes, stream))

    def synchronize(self) -> None:
        self._ask(self._runtime.cudaDeviceSynchronize())

    def capture(self, function: Callable[[], object], n_calls: int) -> NoReturn:  # noqa: ARG002
        message = "the default stream of cuda-python cannot be captured: use --cache hot or cold"
        raise DeviceError(message)

    def record(self, event: Any) -> None:
        self._ask(self._runtime.cudaEventRecord(event, _DEFAULT_STREAM))

    def is_done(self, event: Any) -> bool:
        (status,) = self._runtime.cudaEventQuery(event)
        if status == self._runtime.cudaError_t.cudaErrorNotReady:
            return False
        self._ask((status,))
        return True

    def elapsed_ns(self, start: Any, stop: Any) -> float:
        elapsed_ms: float = self._ask(self._runtime.cudaEventElapsedTime(start, stop))
        return elapsed_ms * _NS_PER_MS

    def _ask(self, answer: tuple[Any, ...]) -> Any:
        """Give what a call gave back behind its status; raises what the status says."""
        status, *values = answer
        if int(status) != 0:
            message = f"CUDA error: {getattr(status, 'name', status)}"
            raise DeviceError(message)
        return values[0] if values else None

    @cached_property
    def _driver(self) -> Any:
        return _bindings("driver")

    @cached_property
    def _kernel(self) -> Any:
        """Compile the kernel that does nothing for a while."""
        nvrtc, driver = _bindings("nvrtc"), self._driver
        number = self._ask(self._runtime.cudaGetDevice())
        properties = self._ask(self._runtime.cudaGetDeviceProperties(number))
        program = self._ask(nvrtc.nvrtcCreateProgram(SPIN_SOURCE.encode(), b"spin.cu", 0, [], []))
        option = f"--gpu-architecture=compute_{properties.major}{properties.minor}".encode()
        self._ask(nvrtc.nvrtcCompileProgram(program, 1, [option]))
        ptx = b" " * self._ask(nvrtc.nvrtcGetPTXSize(program))
        self._ask(nvrtc.nvrtcGetPTX(program, ptx))
        module = self._ask(driver.cuModuleLoadData(ptx))
        return self._ask(driver.cuModuleGetFunction(module, b"longpole_spin"))


def _bindings(name: str) -> Any:
    for path in (
        f"cuda.bindings.{name}",
        {"runtime": "cuda.cudart", "driver": "cuda.cuda"}.get(name, f"cuda.{name}"),
    ):
        try:
            return import_module(path)
        except ImportError:
            continue
    message = "--clock cuda needs cuda-python\nhint: pip install cuda-python"
    raise MissingDependencyError(message)


def _text(name: Any) -> str:
    return name.split(b"\0")[0].decode() if isinstance(name, bytes) else str(name)
