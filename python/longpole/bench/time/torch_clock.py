"""Clocks that need torch, for CUDA and HIP: events around the calls, or records of its profiler.

`TorchClock` is the GPU clock with torch as its device library. It can capture calls in a CUDA
graph, which fails when the function waits for the device. torch then leaves its random generator in
capture mode, and the stream of the capture stays the current one: every later `torch.randn` of the
process would fail. So each function is called once before the capture with torch's check for
synchronizing calls, which fails at the call and changes nothing. That check misses some calls,
such as `torch.cuda.synchronize`. After a capture that fails all the same, the stream is restored
and a capture that succeeds takes the generator out of capture mode.

`CuptiClock` times with torch's profiler: CUPTI on NVIDIA devices, roctracer on AMD. The profiler
records start and end of every kernel, memcpy and memset, on any stream. The time of a function is
how long at least one of them ran: launches and gaps between kernels do not count, so that they need
not be hidden, and no stream is missed. Recording delays the start of kernels slightly but does not
slow them down.
"""

from __future__ import annotations

import linecache
import time
import traceback
import warnings
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.time.clocks import Steady
from longpole.bench.time.gpu_clock import GpuClock, GpuLibrary, flush_size_bytes
from longpole.errors import DeviceError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from longpole.bench.time.clocks import Cache

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
        self._torch.cuda._sleep(cycles)  # noqa: SLF001 - torch has no public function for it

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


_SYNCHRONIZES: Final = "called a synchronizing"
_LONGPOLE: Final = str(Path(__file__).parents[2])
_HINT: Final = "hint: --cache hot and --cache cold can time it"


class CaptureError(DeviceError):
    """The calls of the function cannot be captured in a CUDA graph."""


def captured(torch: Any, function: Callable[[], object], n_calls: int) -> Callable[[], object]:
    """Capture `n_calls` calls in a graph, and return the function that replays it.

    Raises
    ------
    CaptureError
        The calls cannot be captured. torch works as before.
    """
    _refuse_synchronizing(torch, function)
    stream, graph = torch.cuda.current_stream(), torch.cuda.CUDAGraph()
    raised: BaseException | None = None
    try:
        with torch.cuda.graph(graph):
            try:
                for _ in range(n_calls):
                    function()
            except BaseException as error:
                raised = error
                raise
    except (Exception, SystemExit) as error:
        if error is raised:  # the function itself raised it
            raise
        torch.cuda.set_stream(stream)
        _leave_capture_mode(torch)
        cause = raised or error
        place = _place_of(cause, torch)
        message = f"{place} cannot be captured in a CUDA graph: {_first_line(cause)}\n{_HINT}"
        raise CaptureError(message) from cause
    replay: Callable[[], object] = graph.replay
    return replay


def _refuse_synchronizing(torch: Any, function: Callable[[], object]) -> None:
    """Call the function once with torch's check for synchronizing calls."""
    with _synchronizing_calls_fail(torch):
        try:
            function()
        except RuntimeError as error:
            if _SYNCHRONIZES not in str(error):
                raise
            place = _place_of(error, torch)
            message = f"{place} waits for the device, which a CUDA graph cannot do\n{_HINT}"
            raise CaptureError(message) from error


@contextmanager
def _synchronizing_calls_fail(torch: Any) -> Iterator[None]:
    mode = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that the check misses some calls
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(mode)


def _leave_capture_mode(torch: Any) -> None:
    """Capture one kernel: the end of a capture resets the random generator."""
    with suppress(Exception), torch.cuda.graph(torch.cuda.CUDAGraph()):
        torch.cuda._sleep(1)  # noqa: SLF001 - the public API has no kernel without tensors


def _place_of(error: BaseException, torch: Any) -> str:
    """Return file, line and source of the innermost frame outside torch and longpole."""
    libraries = (str(Path(torch.__file__).parent), _LONGPOLE)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(libraries)
    ]
    if not frames:
        return "the function"
    frame = frames[-1]
    source = linecache.getline(frame.filename, frame.lineno or 0).strip()
    place = f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}"
    return f"{place} (`{source}`)" if source else place


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


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
        self._torch.cuda.synchronize()  # do not record the flush
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
