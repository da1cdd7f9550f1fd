"""Clocks that time a function: CPU wall time, or a simulated clock.

A clock times several calls at once, since one call may be shorter than its resolution. The meaning
of a time depends on the clock and on the cache state, so both are in every record, and times taken
in different ways are never compared.

Linux counts the time waited for a CPU, and thermal events.
"""

from __future__ import annotations

import platform
import random
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from longpole.bench.run.sampler import THERMAL, thermal_events, waited_us

if TYPE_CHECKING:
    from collections.abc import Callable

    Function: TypeAlias = Callable[[], object]

Cache: TypeAlias = Literal["cold", "hot", "graph"]

_LAUNCHED: Final = (
    "a GPU was still busy when the calls had returned: this may be the time to launch them; "
    "--clock torch times the GPU"
)


class Clock(Protocol):
    """Times functions."""

    @property
    def name(self) -> str:
        """The name of the clock in a record."""

    @property
    def device(self) -> str:
        """The timed hardware: the model of a CPU or a device."""

    @property
    def cache(self) -> Cache | None:
        """Cache state before each timed call; None if the clock does not control it."""

    @property
    def shortest_sample_ns(self) -> int:
        """Shortest time that it can measure to within a percent."""

    @property
    def step_ns(self) -> float:
        """Resolution: the smallest possible difference between two times."""

    def now_ns(self) -> int:
        """Return the current time on the clock of budgets."""

    def time_ns(self, function: Function, n_calls: int) -> float:
        """Call a function `n_calls` times, and return the total time."""

    def is_undisturbed(self) -> bool:
        """Whether nothing disturbed the last sample, such as throttling."""

    def notes(self, function: Function) -> tuple[str, ...]:
        """Return notes that a reader needs about the times of a function."""

    def host_ns(self, function: Function) -> float | None:
        """Return how long the host takes to launch a call; None if that is not measured."""


class Steady:
    """Base class of clocks that read no conditions and have no notes."""

    __slots__ = ()

    def is_undisturbed(self) -> bool:
        """Return True, since no conditions are read."""
        return True

    def notes(self, function: Function) -> tuple[str, ...]:  # noqa: ARG002 - other clocks use it
        """Return an empty tuple."""
        return ()

    def host_ns(self, function: Function) -> float | None:  # noqa: ARG002 - other clocks use it
        """Return None: it is not measured."""
        return None


class Pressure:
    """Fraction of the time since creation in which something waited for a CPU.

    All programs of the machine count, including ours (pressure stall information).

    Examples
    --------
    >>> share = Pressure().share()
    >>> share is None or 0 <= share <= 1
    True
    """

    def __init__(self) -> None:
        self._begin = time.monotonic(), waited_us()

    def share(self) -> float | None:
        """Return the fraction; None if the system does not count it."""
        passed_s = time.monotonic() - self._begin[0]
        before, now = self._begin[1], waited_us()
        if before is None or now is None or passed_s <= 0:
            return None
        return min(1.0, max(0.0, (now / 1e6 - before / 1e6) / passed_s))


class ThermalEvents:
    """Reports whether there were new thermal events; never, if the system does not count them.

    Parameters
    ----------
    counter
        The file with the count.

    Examples
    --------
    >>> ThermalEvents("/nonexistent").any_new()
    False
    """

    def __init__(self, counter: str = THERMAL) -> None:
        self._counter = counter
        self._seen = thermal_events(counter)

    def any_new(self) -> bool:
        """Whether there were new events since the last query."""
        if self._seen is None:
            return False
        before, self._seen = self._seen, thermal_events(self._counter)
        return self._seen is not None and self._seen > before


@dataclass(frozen=True, slots=True)
class CpuClock(Steady):
    """Wall time on this CPU, including the cost of the call and of the loop, about 30 ns.

    A sample counts as disturbed if the CPU was throttled for heat during it, if the system counts
    such events.

    Examples
    --------
    >>> CpuClock().time_ns(lambda: None, n_calls=1000) > 0
    True
    """

    name: str = "cpu"
    device: str = field(default_factory=lambda: platform.processor() or platform.machine())
    cache: Cache | None = None
    shortest_sample_ns: int = 1_000_000
    step_ns: float = field(
        default_factory=lambda: time.get_clock_info("perf_counter").resolution * 1e9
    )

    thermal: ThermalEvents = field(default_factory=ThermalEvents, repr=False, compare=False)

    def is_undisturbed(self) -> bool:
        """Whether there was no thermal event since the last call."""
        return not self.thermal.any_new()

    def now_ns(self) -> int:
        """Return the current time."""
        return time.perf_counter_ns()

    def time_ns(self, function: Function, n_calls: int) -> float:
        """Call a function `n_calls` times, and return the total time."""
        start_ns = time.perf_counter_ns()
        for _ in repeat(None, n_calls):
            function()
        return time.perf_counter_ns() - start_ns

    def notes(self, function: Function) -> tuple[str, ...]:  # noqa: ARG002 - applies to the whole process
        """Return a note if a GPU still executes work that the calls launched with torch."""
        return (_LAUNCHED,) if _is_gpu_busy() else ()


@dataclass(slots=True)
class FakeClock(Steady):
    """A simulated clock that advances when a function calls `work`, for tests and dry runs.

    Parameters
    ----------
    noise_share
        Spread of the logarithm of a duration.
    outlier_share, outlier_factor
        Fraction of outliers, and how much longer they take.
    drift_share_per_s
        Relative slowdown per second.
    seed
        Seed; runs with the same seed are identical.

    Examples
    --------
    >>> clock = FakeClock()
    >>> clock.time_ns(lambda: clock.work(500), n_calls=3)
    1500.0
    """

    noise_share: float = 0.0
    outlier_share: float = 0.0
    outlier_factor: float = 2.0
    drift_share_per_s: float = 0.0
    seed: int = 0
    name: str = "fake"
    device: str = "fake"
    cache: Cache | None = None
    shortest_sample_ns: int = 1000
    step_ns: float = 0.0
    _elapsed_ns: float = field(default=0.0, init=False)
    _random: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 - noise, not a secret

    def work(self, duration_ns: float) -> None:
        """Advance the clock by a duration with the configured noise."""
        duration_ns *= self._random.lognormvariate(0, self.noise_share)
        duration_ns *= 1 + self.drift_share_per_s * self._elapsed_ns / 1e9
        if self._random.random() < self.outlier_share:
            duration_ns *= self.outlier_factor
        self._elapsed_ns += duration_ns

    def now_ns(self) -> int:
        """Return the current time."""
        return round(self._elapsed_ns)

    def time_ns(self, function: Function, n_calls: int) -> float:
        """Call a function `n_calls` times, and return the total time."""
        start_ns = self._elapsed_ns
        for _ in repeat(None, n_calls):
            function()
        return self._elapsed_ns - start_ns


def _is_gpu_busy() -> bool:
    """Whether work is queued on the current stream of torch, if the process uses torch on a GPU."""
    torch = sys.modules.get("torch")
    with suppress(Exception):  # a failed device returns arbitrary errors
        return (
            torch is not None
            and torch.cuda.is_initialized()
            and not torch.cuda.current_stream().query()
        )
    return False
