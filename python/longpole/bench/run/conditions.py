"""The conditions under which times were taken, as sampled by the guard during the run.

A sample is dropped because of the conditions, never because of its value. The relevant readings are
those from the last one before the sample to the first one after it: clock, slowdowns by hardware or
heat, and counters that increased in between.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from longpole.bench.records.record import HIGH_PRESSURE
from longpole.devices import SLOWDOWNS, sampler_source
from longpole.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from longpole.devices import Device, Provider

    Window: TypeAlias = tuple[int, int]

# NVBench's rule: a clock below this fraction of the usual one means a throttled device.
_LOWEST_CLOCK: Final = 0.75

# If more than this share of the samples would be dropped for pressure, none are: the whole run is
# crowded.
_MOST_DROPPED: Final = 0.20

_DEVICE_INTERVAL_S: Final = 0.02
_PROCESSOR_INTERVAL_S: Final = 0.05
_LOCK_WAIT_S: Final = 30.0
_POLL_S: Final = 0.005
_LATE_READINGS: Final = 5
_NS_PER_US: Final = 1000
_MILLI: Final = 1000


@dataclass(frozen=True, slots=True)
class Moment:
    """One reading. None for values that could not be read.

    Parameters
    ----------
    at_ns
        Time, on the clock of `time.perf_counter_ns`.
    clock_mhz
        Clock of the device.
    reasons
        Reasons for not being faster.
    violations
        How long, or how often, heat, the board or reliability limited it so far.
    temperature_c, power_w
        Temperature and power of the device.
    waited_us
        Total time that tasks of all programs have waited for a CPU so far.
    thermal_events
        Number of thermal events of the CPU so far.
    """

    at_ns: int
    clock_mhz: int | None = None
    reasons: tuple[str, ...] = ()
    violations: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    waited_us: int | None = None
    thermal_events: int | None = None

    @classmethod
    def parse(cls, line: str) -> Self | None:
        """Parse a line of the sampler; None if it is invalid."""
        try:
            at_ns, clock, reasons, violations, celsius, power_mw, *counters = json.loads(line)
        except (ValueError, TypeError):
            return None
        power_w = None if power_mw is None else power_mw / _MILLI
        return cls(at_ns, clock, tuple(reasons), violations, celsius, power_w, *counters)

    @property
    def is_slowed(self) -> bool:
        """Whether hardware or heat slows the device down; a power cap does not count."""
        return bool(SLOWDOWNS.intersection(self.reasons))


class Conditions:
    """Readings from a growing file.

    Parameters
    ----------
    path
        The file.
    interval_s
        Interval between readings.
    """

    def __init__(self, path: str | os.PathLike[str], interval_s: float) -> None:
        self._path = Path(path)
        self._interval_s = interval_s
        self._offset = 0
        self.moments: list[Moment] = []

    def disturbed(self, windows: Sequence[Window], *, heeds_pressure: bool) -> list[bool]:
        """Return whether to drop a sample taken in each time window.

        Parameters
        ----------
        windows
            Start and end of consecutive windows.
        heeds_pressure
            Whether CPU waits of other programs count. They do not if several functions take
            turns, since they affect all alike. If most windows would be dropped, none is: the whole
            run was crowded, which its record says.
        """
        self._read()
        if not windows or not (heeds_pressure or any(map(_tells_of_throttling, self.moments))):
            return [False] * len(windows)
        self._wait_until(windows[-1][1])
        throttled = self._any_of(windows, _throttled(self.moments))
        if not heeds_pressure:
            return throttled
        crowded = self._any_of(windows, [_is_crowded(*pair) for pair in pairwise(self.moments)])
        if sum(crowded) > _MOST_DROPPED * len(windows):
            return throttled
        return [slow or full for slow, full in zip(throttled, crowded, strict=True)]

    def summary(self, begin_ns: int, end_ns: int) -> dict[str, Any]:
        """Summarise the readings of a time span."""
        self._read()
        return summarise_conditions(
            [each for each in self.moments if begin_ns <= each.at_ns <= end_ns]
        )

    def _any_of(self, windows: Sequence[Window], intervals: Sequence[bool]) -> list[bool]:
        """Return for each window whether it overlaps a marked span."""
        found, first = [], 0
        for begin_ns, end_ns in windows:
            while first < len(intervals) and self.moments[first + 1].at_ns < begin_ns:
                first += 1
            marked, place = False, first
            while place < len(intervals) and self.moments[place].at_ns <= end_ns:
                marked |= intervals[place]
                place += 1
            found.append(marked)
        return found

    def _wait_until(self, at_ns: int) -> None:
        """Wait for the first reading after a time, for a limited time, since there may be none."""
        deadline = time.monotonic() + _LATE_READINGS * self._interval_s
        while True:
            self._read()
            is_there = bool(self.moments) and self.moments[-1].at_ns >= at_ns
            if is_there or time.monotonic() >= deadline:
                return
            time.sleep(_POLL_S)

    def _read(self) -> None:
        with suppress(OSError), self._path.open("rb") as file:
            file.seek(self._offset)
            whole, newline, _ = file.read().rpartition(b"\n")
            self._offset += len(whole) + len(newline)
            lines = whole.decode("ascii", "replace").split("\n")
            self.moments += [each for each in map(Moment.parse, lines) if each is not None]


class Sampling:
    """What a guard should read while its jobs run, and the file to write it to.

    Parameters
    ----------
    device, provider
        The measured device; None for the CPU.
    lock_mhz
        The clock to lock.
    """

    def __init__(
        self,
        device: Device | None = None,
        provider: Provider | None = None,
        lock_mhz: int | None = None,
    ) -> None:
        descriptor, self.path = tempfile.mkstemp(prefix="longpole-readings-")
        os.close(descriptor)
        source = sampler_source(device, provider)
        is_read = source["binding"] is not None
        self.interval_s = _DEVICE_INTERVAL_S if is_read else _PROCESSOR_INTERVAL_S
        self.lock_mhz = lock_mhz
        fields = {**source, "path": self.path, "interval_s": self.interval_s, "lock_mhz": lock_mhz}
        self.text = json.dumps(fields)

    def conditions(self) -> Conditions:
        """Return the readings written so far."""
        return Conditions(self.path, self.interval_s)

    def wait_for_lock(self) -> None:
        """Wait until the clock is locked, if requested.

        Raises
        ------
        DeviceError
            The clock cannot be locked.
        """
        if self.lock_mhz is None:
            return
        deadline = time.monotonic() + _LOCK_WAIT_S
        while not (said := _first_line(self.path)) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        if not said.startswith("locked"):
            reason = said.removeprefix("refused ") or "the guard does not answer"
            message = (
                f"the clock cannot be locked at {self.lock_mhz} MHz: {reason}\n"
                "hint: locking needs root, or leave out --lock-clock"
            )
            raise DeviceError(message)

    def clear(self) -> None:
        """Discard the readings so far."""
        with suppress(OSError):
            os.truncate(self.path, 0)

    def remove(self) -> None:
        """Remove the file if the guard has not done so."""
        with suppress(OSError):
            Path(self.path).unlink()


def summarise_conditions(moments: Iterable[Moment]) -> dict[str, Any]:
    """Summarise readings for a record; unavailable values are left out.

    Examples
    --------
    >>> moments = [Moment(0, clock_mhz=1980), Moment(10, clock_mhz=1410, reasons=("sw_power_cap",))]
    >>> found = summarise_conditions(moments)
    >>> found["clock_mhz"], found["clock_min_mhz"], found["throttle_reasons"]
    (1695.0, 1410, ['sw_power_cap'])
    """
    found = list(moments)
    clocks = [each.clock_mhz for each in found if each.clock_mhz is not None]
    celsius = [each.temperature_c for each in found if each.temperature_c is not None]
    watts = [each.power_w for each in found if each.power_w is not None]
    pressures = [share for pair in pairwise(found) if (share := _pressure(*pair)) is not None]
    throttled = _throttled(found)
    summary = {
        "n_readings": len(found),
        "clock_mhz": median(clocks) if clocks else None,
        "clock_min_mhz": min(clocks, default=None),
        "clock_max_mhz": max(clocks, default=None),
        "temperature_max_c": max(celsius, default=None),
        "power_w": fmean(watts) if watts else None,
        "power_max_w": max(watts, default=None),
        "throttle_reasons": sorted({reason for each in found for reason in each.reasons}),
        "throttled_share": sum(throttled) / len(throttled) if throttled else None,
        "cpu_pressure": _pressure(found[0], found[-1]) if found else None,
        "cpu_pressure_max": max(pressures, default=None),
    }
    return {name: value for name, value in summary.items() if value not in (None, [])}


def is_disturbed_by(n_dropped: int, n_kept: int) -> bool:
    """Whether too many samples of a run were dropped."""
    return n_dropped > _MOST_DROPPED * (n_dropped + n_kept)


def is_disturbed(summary: Mapping[str, Any]) -> bool:
    """Whether a device was throttled for too large a part of a run."""
    return bool(summary.get("throttled_share", 0.0) > _MOST_DROPPED)


def _throttled(moments: Sequence[Moment]) -> list[bool]:
    """Return for each interval between readings whether the device was throttled."""
    clocks = [each.clock_mhz for each in moments if each.clock_mhz]
    least_mhz = _LOWEST_CLOCK * median(clocks) if clocks else 0.0
    return [_is_throttled(*pair, least_mhz) for pair in pairwise(moments)]


def _is_throttled(before: Moment, after: Moment, least_mhz: float) -> bool:
    if before.is_slowed or after.is_slowed:
        return True
    if _has_moved(before.violations, after.violations):
        return True
    if _has_moved(before.thermal_events, after.thermal_events):
        return True
    clocks = [each.clock_mhz for each in (before, after) if each.clock_mhz is not None]
    return any(clock < least_mhz for clock in clocks)


def _tells_of_throttling(moment: Moment) -> bool:
    """Whether a reading has any value that can show throttling."""
    fields = (moment.clock_mhz, moment.violations, moment.thermal_events)
    return bool(moment.reasons) or any(each is not None for each in fields)


def _has_moved(before: int | None, after: int | None) -> bool:
    return before is not None and after is not None and after > before


def _is_crowded(before: Moment, after: Moment) -> bool:
    share = _pressure(before, after)
    return share is not None and share > HIGH_PRESSURE


def _pressure(before: Moment, after: Moment) -> float | None:
    """Return the fraction of time between two readings in which tasks waited for a CPU."""
    if before.waited_us is None or after.waited_us is None or after.at_ns <= before.at_ns:
        return None
    waited_ns = _NS_PER_US * (after.waited_us - before.waited_us)
    return min(1.0, max(0.0, waited_ns / (after.at_ns - before.at_ns)))


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").partition("\n")[0]
    except OSError:
        return ""
