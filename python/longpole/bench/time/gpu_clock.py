"""Device time of functions that launch work on a GPU.

If a launch takes longer than a kernel, two events around a few calls time the launches instead of
the kernels: the device waits for the host between the kernels. The host therefore gets a head
start: a *pad*, a kernel that spins for a given number of clock cycles, is launched first, then the
start event, the calls, and the stop event. Every sample is checked: if the device reached the start
event before the stop event was recorded, the host was late, so the sample is dropped and the pad is
lengthened. The length of the pad is bounded, so a function that waits for the device cannot
deadlock.

The time between two events with nothing between them is measured first and subtracted, and so is
the fixed cost of a graph replay. The gaps between kernels remain: about 1 us between launches and
0.06 to 0.25 us between the nodes of a graph on an H100. A note reports them if they matter. Two
problems are detected by timing the same calls in other ways: work on another stream, which the
events do not cover, and functions whose launches take longer than their kernels.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from statistics import median
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from longpole.bench.time.clocks import Steady
from longpole.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from longpole.bench.time.clocks import Cache

    Function: TypeAlias = Callable[[], object]

# The largest last cache so far is that of the MI300X; some devices report a smaller one.
_SMALLEST_FLUSH_BYTES: Final = 320 << 20
_FLUSH_FACTOR: Final = 1.25

_FLOOR_SAMPLES: Final = 100
_MOST_CALLS_PADDED: Final = 32
_MOST_CALLS_CAPTURED: Final = 1024
_MOST_GRAPHS: Final = 2
_SHORTEST_PAD_NS: Final = 50_000.0
_LONGEST_PAD_NS: Final = 50e6
_HEAD_START: Final = 1.5

# The pad is doubled this many times before the number of calls is reduced.
_DOUBLINGS: Final = 2

# If the device is busy this many times as long as the events show, they do not cover all work.
_UNSEEN_FACTOR: Final = 5.0
_UNSEEN_NS: Final = 20_000.0

_CALIBRATION_CYCLES: Final = 1_000_000
_CALIBRATIONS: Final = 5

# Numbers of nodes from which the fixed cost of a graph replay is computed, with short kernels.
_NODES: Final = (8, 16)
_NODE_NS: Final = 2_000.0
_REPLAYS: Final = 20
_REPLAY_PAD_NS: Final = 500_000.0

_FEW_NS: Final = 5e6
_HOST_CALLS: Final = 5
_HOST_BOUND: Final = 1.1
_WAITS: Final = "it synchronizes, so this is wall time, including launches"

# Gaps between kernels are more than 5 % of calls shorter than this.
_GAPS: Final[dict[str, tuple[float, str]]] = {
    "hot": (20_000.0, "the gaps between launches, about 1 us each on an H100"),
    "graph": (5_000.0, "the gaps between the nodes of a graph, 0.06 to 0.25 us each on an H100"),
}

# The gaps between launches are less than 1 % of longer calls.
_LONG_CALL_NS: Final = 100_000.0


class WrongStreamError(DeviceError):
    """The function works on a stream that is not the current one, which events do not cover."""


class GpuLibrary(ABC):
    """The functions of a device library that a clock needs. Events are marks in the timed stream.

    The methods of the subclasses are described here.
    """

    name: str
    device: str

    def now_ns(self) -> int:
        """Return the time of the host."""
        return time.perf_counter_ns()

    def spin(self, duration_ns: float) -> None:
        """Queue a kernel that keeps the device busy for about `duration_ns`."""
        self.spin_cycles(round(duration_ns * self._cycles_per_ns))

    @abstractmethod
    def spin_cycles(self, cycles: int) -> None:
        """Queue a kernel that spins for `cycles` of the device's clock."""

    @abstractmethod
    def event(self) -> Any:
        """Create an event."""

    @abstractmethod
    def record(self, event: Any) -> None:
        """Queue an event."""

    @abstractmethod
    def is_done(self, event: Any) -> bool:
        """Whether the device has reached an event."""

    @abstractmethod
    def elapsed_ns(self, start: Any, stop: Any) -> float:
        """Return the time between two events."""

    @abstractmethod
    def flush(self) -> None:
        """Queue a write of more bytes than the last cache holds."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until the device is idle."""

    @abstractmethod
    def capture(self, function: Function, n_calls: int) -> Function:
        """Return a function that replays `n_calls` calls as one graph."""

    @cached_property
    def _cycles_per_ns(self) -> float:
        """Rate of the device clock, measured with kernels that spin for a number of cycles."""
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
    """Values that the clock has measured for a function."""

    function: Function
    host_ns: float
    n_calls: int
    pad_factor: float = 1.0
    first_ns: float = 1.0
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
        """Return the time of the host."""
        return self._library.now_ns()

    def time_ns(self, function: Function, n_calls: int) -> float:
        """Call a function `n_calls` times, and return how long the device took for all of them.

        Raises
        ------
        WrongStreamError
            Its work is on a stream that is not timed.
        """
        known = self._knowledge_of(function)
        total_ns, left = 0.0, n_calls
        while left:
            n = min(left, 1 if self.cache == "cold" else known.n_calls)
            total_ns += self._sample_ns(known, n)
            left -= n
        return total_ns

    def notes(self, function: Function) -> tuple[str, ...]:
        """Return what a reader has to know about the times of a function."""
        known = self._known.get(id(function))
        return known.notes if known else ()

    def host_ns(self, function: Function) -> float | None:
        """Return how long the host takes for a call while the device is busy."""
        known = self._known.get(id(function))
        return None if known is None or known.synchronizes else known.host_ns

    def suited_to(self, functions: Iterable[Function]) -> GpuClock:
        """Return a clock for the length of the calls: one that captures them if one is short.

        This clock must be a `hot` one. It is returned if all calls are long, or if one of them
        cannot be captured. A function that raises does not count.
        """
        durations_ns: list[float] = []
        found = []
        for function in functions:
            with suppress(Exception, SystemExit):
                known = self._knowledge_of(function)
                durations_ns.append(self._call_ns(known))
                found.append(known)
        if min(durations_ns, default=math.inf) >= _LONG_CALL_NS:
            return self
        return GpuClock(self._library, "graph") if all(map(self._can_capture, found)) else self

    def _can_capture(self, known: _Known) -> bool:
        if known.synchronizes:
            return False
        try:
            self._library.capture(known.function, 1)
        except (Exception, SystemExit):  # noqa: BLE001 - any exception would be raised later too
            return False
        return True

    def _floor_ns(self) -> float:
        return self._between_events_ns(_nothing, _SHORTEST_PAD_NS)

    @cached_property
    def _replay_ns(self) -> float:
        """The fixed cost of a graph replay, in addition to the time of its nodes."""
        fewer_ns, more_ns = map(self._replay_of_nodes_ns, _NODES)
        return max(0.0, 2 * fewer_ns - more_ns - self._floor)

    def _replay_of_nodes_ns(self, n_nodes: int) -> float:
        replay = self._library.capture(partial(self._library.spin, _NODE_NS), n_nodes)
        replay()
        self._library.synchronize()
        return median(self._between_events_ns(replay, _REPLAY_PAD_NS) for _ in range(_REPLAYS))

    def _between_events_ns(self, function: Function, pad_ns: float) -> float:
        library, start, stop = self._library, self._library.event(), self._library.event()
        library.spin(pad_ns)
        library.record(start)
        function()
        library.record(stop)
        library.synchronize()
        return library.elapsed_ns(start, stop)

    def _knowledge_of(self, function: Function) -> _Known:
        return self._known.get(id(function)) or self._learn(function)

    def _learn(self, function: Function) -> _Known:
        """Time a function in several ways, to find out how to time it."""
        function()
        self._library.synchronize()
        n_calls = _MOST_CALLS_CAPTURED if self.cache == "graph" else _MOST_CALLS_PADDED
        known = _Known(function, self._measured_host_ns(function), n_calls)
        self._known[id(function)] = known
        known.first_ns = self._sample_ns(known, 1)
        self._check_stream(known, known.first_ns)
        if self.cache != "cold" and not known.synchronizes:
            known.notes += self._notes_on_length(known)
        return known

    def _measured_host_ns(self, function: Function) -> float:
        """Return how long the host takes for a call while the device is busy."""
        durations_ns = []
        self._library.spin(_SHORTEST_PAD_NS)
        for _ in range(_HOST_CALLS):
            begin_ns = self._library.now_ns()
            function()
            durations_ns.append(self._library.now_ns() - begin_ns)
        self._library.synchronize()
        return float(max(1, median(durations_ns)))

    def _sample_ns(self, known: _Known, n_calls: int) -> float:
        """Time `n_calls` calls, with a longer pad or fewer calls if the host is late."""
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
        """Time calls after a pad; None if the pad ended before the host had queued all of them."""
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
        if is_late:
            return None
        besides_ns = self._floor + (self._replay_ns if self.cache == "graph" else 0.0)
        return max(1.0, library.elapsed_ns(start, stop) - besides_ns)

    def _pad_ns(self, known: _Known, repeats: int) -> float:
        pad_ns = _HEAD_START * repeats * known.host_ns + _SHORTEST_PAD_NS
        return min(_LONGEST_PAD_NS, known.pad_factor * pad_ns)

    def _give_more_room(self, known: _Known) -> None:
        """Lengthen the pad, then reduce the calls, and finally assume that the function waits."""
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
            if len(graphs) >= _MOST_GRAPHS:  # each has memory of its own
                graphs.pop(next(iter(graphs)))
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
        """Raise if the events did not cover the work."""
        if known.synchronizes or padded_ns > 2 * self._floor:
            return
        idle_ns = median(self._wall_ns(_Known(_nothing, 1.0, 1), 1) for _ in range(5))
        busy_ns = median(self._wall_ns(known, 1) for _ in range(5)) - idle_ns - known.host_ns
        if busy_ns > _UNSEEN_FACTOR * padded_ns + _UNSEEN_NS:
            message = (
                f"the device works for {busy_ns / 1000:.1f} us, but not on the current stream, "
                "which is the one being timed\n"
                "hint: launch on the current stream, or let it wait for the other one"
            )
            raise WrongStreamError(message)

    def _call_ns(self, known: _Known) -> float:
        n_calls = self._few_calls(known)
        return self._sample_ns(known, n_calls) / n_calls

    def _few_calls(self, known: _Known) -> int:
        """Return a number of calls that take a few milliseconds at most."""
        return max(1, min(_MOST_CALLS_PADDED, known.n_calls, round(_FEW_NS / known.first_ns)))

    def _notes_on_length(self, known: _Known) -> tuple[str, ...]:
        """Return notes on calls that the host launches slowly, and on gaps between kernels."""
        device_ns = self._call_ns(known)
        notes = self._host_bound(known, device_ns) if self.cache == "hot" else ()
        shortest_ns, gaps = _GAPS[self.cache]
        if device_ns >= shortest_ns:
            return notes
        return (*notes, f"the time includes {gaps}; --clock cupti excludes them")

    def _host_bound(self, known: _Known, device_ns: float) -> tuple[str, ...]:
        """Return a note if the host takes longer for a call than the device."""
        n_calls = self._few_calls(known)
        free_ns = self._wall_ns(known, n_calls) / n_calls
        if free_ns <= _HOST_BOUND * device_ns or known.host_ns <= device_ns:
            return ()
        times = f"the device needs {device_ns / 1000:.1f} us a call, the host"
        return (f"{times} {known.host_ns / 1000:.1f} us: host-bound unless captured in a graph",)


def flush_size_bytes(cache_bytes: int) -> int:
    """Return how many bytes to write so that nothing else remains in the last-level cache.

    Examples
    --------
    >>> flush_size_bytes(50 << 20) >> 20, flush_size_bytes(512 << 20) >> 20
    (320, 640)
    """
    return max(_SMALLEST_FLUSH_BYTES, round(_FLUSH_FACTOR * cache_bytes))


def _nothing() -> None:
    pass
