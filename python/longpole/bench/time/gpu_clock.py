"""Device time of functions that launch work on a GPU.

Two events around a few calls do not time the kernels but their launches, where a launch takes
longer than a kernel: the device waits for the host between them. So the host gets a head start:
a *pad*, a kernel that spins for a given number of clock cycles, is launched first, then the start
event, the calls, and the stop event. Whether the head start was long enough is checked for every
sample: if the start event has come before the stop event was recorded, the host was late, the
sample is dropped and the pad is made longer. The pad is bounded, so a function that waits for the
device cannot deadlock.

What the clock reads when nothing lies between two events is measured first and subtracted. Work
that ran on another stream, which the events do not see, and functions whose launches take longer
than their kernels are found by timing the same calls in other ways, and said.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from longpole.bench.time.clocks import Steady
from longpole.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.bench.time.clocks import Cache

    Function: TypeAlias = Callable[[], object]

__all__ = ["GpuClock", "GpuLibrary", "WrongStreamError", "flush_size_bytes"]

# The largest last cache so far is that of the MI300X; some devices report a smaller one.
_SMALLEST_FLUSH_BYTES: Final = 320 << 20
_FLUSH_FACTOR: Final = 1.25

_FLOOR_SAMPLES: Final = 100
_MOST_CALLS_PADDED: Final = 32
_SHORTEST_PAD_NS: Final = 50_000.0
_LONGEST_PAD_NS: Final = 50e6
_HEAD_START: Final = 1.5

# Twice the pad is tried before fewer calls are.
_DOUBLINGS: Final = 2

# Work that the events do not see: the device is busy so much longer than they say.
_UNSEEN_FACTOR: Final = 5.0
_UNSEEN_NS: Final = 20_000.0

_CALIBRATION_CYCLES: Final = 1_000_000
_CALIBRATIONS: Final = 5

_HOST_BOUND: Final = 1.1
_WAITS: Final = "it synchronizes, so this is wall time, including launches"


class WrongStreamError(DeviceError):
    """The function works on a stream that is not the current one, where events do not see it."""


class GpuLibrary(ABC):
    """As much of a device library as a clock needs. Events are marks in the stream that is timed.

    Those of the libraries are private: what they do is said here.
    """

    name: str
    device: str

    def now_ns(self) -> int:
        """Tell the time of the host."""
        return time.perf_counter_ns()

    def spin(self, duration_ns: float) -> None:
        """Queue a kernel that keeps the device busy for about `duration_ns`."""
        self.spin_cycles(round(duration_ns * self._cycles_per_ns))

    @abstractmethod
    def spin_cycles(self, cycles: int) -> None:
        """Queue a kernel that spins for `cycles` of the device's clock."""

    @abstractmethod
    def event(self) -> Any:
        """Make a mark."""

    @abstractmethod
    def record(self, event: Any) -> None:
        """Queue a mark."""

    @abstractmethod
    def is_done(self, event: Any) -> bool:
        """Say whether the device has come to a mark."""

    @abstractmethod
    def elapsed_ns(self, start: Any, stop: Any) -> float:
        """Give the time between two marks."""

    @abstractmethod
    def flush(self) -> None:
        """Queue a write of more bytes than the last cache holds."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until the device is idle."""

    @abstractmethod
    def capture(self, function: Function, n_calls: int) -> Function:
        """Give a function that replays `n_calls` calls as one graph."""

    @cached_property
    def _cycles_per_ns(self) -> float:
        """The rate of the device's clock, from kernels that spin for a fixed number of cycles."""
        durations_ns = []
        for _ in range(_CALIBRATIONS):
            start, stop = self.event(), self.event()
            self.record(start)
            self.spin_cycles(_CALIBRATION_CYCLES)
            self.record(stop)
            self.synchronize()
            durations_ns.append(self.elapsed_ns(start, stop))
        return _CALIBRATION_CYCLES / min(durations_ns)


@dataclass(slots=True)
class _Known:
    """What was learnt about a function."""

    function: Function
    host_ns: float
    pad_factor: float = 1.0
    n_calls: int = _MOST_CALLS_PADDED
    synchronizes: bool = False
    notes: tuple[str, ...] = ()
    graphs: dict[int, Function] = field(default_factory=dict)


class GpuClock(Steady):
    """Times functions on a device.

    Parameters
    ----------
    library
        The device library.
    cache
        `cold`: before each call more bytes than the last cache holds are written. `hot`: the
        calls follow one another. `graph`: they are captured once and replayed.
    """

    shortest_sample_ns = 200_000

    def __init__(
        self,
        library: GpuLibrary,
        cache: Cache,
    ) -> None:
        self._library = library
        self._known: dict[int, _Known] = {}
        self.name = library.name
        self.device = library.device
        self.cache: Cache = cache
        floors = sorted(self._floor_ns() for _ in range(_FLOOR_SAMPLES))
        self._floor = median(floors)
        self.step_ns = max(1.0, floors[3 * len(floors) // 4] - floors[len(floors) // 4])

    def now_ns(self) -> int:
        """Tell the time of the host."""
        return self._library.now_ns()

    def time_ns(self, function: Function, n_calls: int) -> float:
        """Call a function `n_calls` times, and say how long the device took for all of them.

        Raises
        ------
        WrongStreamError
            Its work is on a stream that is not timed.
        """
        known = self._known.get(id(function)) or self._learn(function)
        total_ns, left = 0.0, n_calls
        while left:
            n = min(left, 1 if self.cache == "cold" else known.n_calls)
            total_ns += self._sample_ns(known, n)
            left -= n
        return total_ns

    def notes(self, function: Function) -> tuple[str, ...]:
        """Say what is to be known about the times of a function."""
        known = self._known.get(id(function))
        return known.notes if known else ()

    def _floor_ns(self) -> float:
        library, start, stop = self._library, self._library.event(), self._library.event()
        library.spin(_SHORTEST_PAD_NS)
        library.record(start)
        library.record(stop)
        library.synchronize()
        return library.elapsed_ns(start, stop)

    def _learn(self, function: Function) -> _Known:
        """Time a function in several ways, to know how to time it."""
        function()
        self._library.synchronize()
        known = _Known(function, self._host_ns(function))
        self._known[id(function)] = known
        padded_ns = self._sample_ns(known, 1)
        self._check_stream(known, padded_ns)
        if self.cache == "hot" and not known.synchronizes:
            known.notes += self._host_bound(known)
        return known

    def _host_ns(self, function: Function) -> float:
        """Give how long the host takes for a call while the device is busy."""
        self._library.spin(_SHORTEST_PAD_NS)
        begin_ns = self._library.now_ns()
        function()
        host_ns = self._library.now_ns() - begin_ns
        self._library.synchronize()
        return float(max(1, host_ns))

    def _sample_ns(self, known: _Known, n_calls: int) -> float:
        """Time `n_calls` calls; where the host is late, with a longer pad or fewer calls."""
        left, total_ns = n_calls, 0.0
        while left:
            n = min(left, known.n_calls)
            if known.synchronizes:
                total_ns += self._wall_ns(known, n)
                left -= n
                continue
            sample_ns = self._padded_ns(known, n)
            if sample_ns is None:
                self._give_more_room(known)
            else:
                total_ns += sample_ns
                left -= n
        return total_ns

    def _padded_ns(self, known: _Known, n_calls: int) -> float | None:
        """Time calls behind a pad; None where the host was late."""
        called, repeats = known.function, n_calls
        if self.cache == "graph":
            called, repeats = self._graph(known, n_calls), 1
        library, start, stop = self._library, self._library.event(), self._library.event()
        library.spin(self._pad_ns(known, repeats))
        if self.cache == "cold":
            library.flush()
        library.record(start)
        for _ in range(repeats):
            called()
        library.record(stop)
        is_late = library.is_done(start)
        library.synchronize()
        return None if is_late else max(1.0, library.elapsed_ns(start, stop) - self._floor)

    def _pad_ns(self, known: _Known, repeats: int) -> float:
        pad_ns = _HEAD_START * repeats * known.host_ns + _SHORTEST_PAD_NS
        return min(_LONGEST_PAD_NS, known.pad_factor * pad_ns)

    def _give_more_room(self, known: _Known) -> None:
        """Lengthen the pad, then take fewer calls, then believe that the function waits."""
        if known.pad_factor < 2**_DOUBLINGS:
            known.pad_factor *= 2
        elif known.n_calls > 1:
            known.n_calls //= 2
        elif self._pad_ns(known, 1) < _LONGEST_PAD_NS:
            known.pad_factor = math.inf
        else:
            known.synchronizes = True
            known.notes += (_WAITS,)

    def _graph(self, known: _Known, n_calls: int) -> Function:
        graphs = known.graphs
        if n_calls not in graphs:
            graphs[n_calls] = self._library.capture(known.function, n_calls)
            graphs[n_calls]()  # the first replay uploads it
            self._library.synchronize()
        return graphs[n_calls]

    def _wall_ns(self, known: _Known, n_calls: int) -> float:
        self._library.synchronize()
        begin_ns = self._library.now_ns()
        for _ in range(n_calls):
            known.function()
        self._library.synchronize()
        return float(max(1, self._library.now_ns() - begin_ns))

    def _check_stream(self, known: _Known, padded_ns: float) -> None:
        """Refuse work that the events did not see."""
        if known.synchronizes or padded_ns > 2 * self._floor:
            return
        idle_ns = median(self._wall_ns(_Known(_nothing, 1.0), 1) for _ in range(5))
        busy_ns = median(self._wall_ns(known, 1) for _ in range(5)) - idle_ns - known.host_ns
        if busy_ns > _UNSEEN_FACTOR * padded_ns + _UNSEEN_NS:
            message = (
                f"the device works for {busy_ns / 1000:.1f} us, but not on the current stream, "
                "which is the one being timed\n"
                "hint: launch on the current stream, or let it wait for the other one"
            )
            raise WrongStreamError(message)

    def _host_bound(self, known: _Known) -> tuple[str, ...]:
        """Say where the host takes longer for a call than the device."""
        n_calls = known.n_calls
        device_ns = self._sample_ns(known, n_calls) / n_calls
        free_ns = self._wall_ns(known, n_calls) / n_calls
        if free_ns <= _HOST_BOUND * device_ns or known.host_ns <= device_ns:
            return ()
        times = f"the device needs {device_ns / 1000:.1f} us a call, the host"
        return (f"{times} {known.host_ns / 1000:.1f} us: host-bound unless captured in a graph",)


def flush_size_bytes(cache_bytes: int) -> int:
    """Say how many bytes to write so that nothing else is left in the last cache.

    Examples
    --------
    >>> flush_size_bytes(50 << 20) >> 20, flush_size_bytes(512 << 20) >> 20
    (320, 640)
    """
    return max(_SMALLEST_FLUSH_BYTES, round(_FLUSH_FACTOR * cache_bytes))


def _nothing() -> None:
    pass
