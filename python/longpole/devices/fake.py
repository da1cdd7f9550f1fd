"""Devices that are not there: for tests, and to try a plan before the machine is free.

Their time is a virtual clock, so that a script of noise, drift, throttling and
loss plays the same way every time and in no time at all.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from longpole.devices.protocol import Device, DeviceLostError, Process, Reading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longpole.devices.protocol import Vendor

__all__ = ["FakeProvider", "Script", "Throttle", "VirtualClock"]

BASE_CLOCK_MHZ = 1500
IDLE_TEMPERATURE_C = 40.0
HOT_TEMPERATURE_C = 90.0


@dataclass(slots=True)
class VirtualClock:
    """A clock that moves when it is told to."""

    now_ns: int = 0

    def advance(self, duration_ns: int) -> None:
        """Let time pass."""
        self.now_ns += duration_ns


@dataclass(frozen=True, slots=True)
class Throttle:
    """From `start_ns` to `end_ns` the clock runs at `share` of its speed."""

    start_ns: int
    end_ns: int
    share: float


@dataclass(frozen=True, slots=True)
class Script:
    """What happens to a device.

    `noise_share` is the spread of the logarithm of a duration, `outlier_share`
    of them take `outlier_factor` as long, and everything gets slower by
    `drift_share_per_s` of itself a second. The first `busy_readings` readings show a
    process of somebody else.
    """

    noise_share: float = 0.0
    outlier_share: float = 0.0
    outlier_factor: float = 2.0
    drift_share_per_s: float = 0.0
    throttles: tuple[Throttle, ...] = ()
    lost_at_ns: int | None = None
    busy_readings: int = 0


@dataclass(slots=True)
class FakeProvider:
    """A machine with `count` devices, each with its script (by index)."""

    count: int = 1
    scripts: Mapping[int, Script] = field(default_factory=dict)
    seed: int = 0
    clock: VirtualClock = field(default_factory=VirtualClock)
    vendor: Vendor = "fake"
    reads_fast: bool = True
    n_readings: int = 0
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311

    def list_devices(self) -> list[Device]:
        """List the devices, lost ones too: a list is made before anything happens."""
        return [
            Device(
                uuid=f"FAKE-{index:04d}",
                vendor="fake",
                token=str(index),
                index=index,
                name="Fake device",
                pci=f"0000:{index:02x}:00.0",
                arch="fake",
                memory_bytes=16 << 30,
                driver="0",
            )
            for index in range(self.count)
        ]

    def settings(self, device: Device) -> dict[str, str]:  # noqa: ARG002
        """Say nothing: there is nothing to set."""
        return {}

    def read(self, device: Device) -> Reading:
        """Read the state that the script prescribes for now."""
        self._check_lost(device)
        share = self._speed_share(device)
        throttled = share < 1
        return Reading(
            clock_mhz=round(BASE_CLOCK_MHZ * share),
            clock_max_mhz=BASE_CLOCK_MHZ,
            temperature_c=HOT_TEMPERATURE_C if throttled else IDLE_TEMPERATURE_C,
            throttle_reasons=("hw_thermal_slowdown",) if throttled else (),
            processes=(Process(1, None, "compute"),) if self._is_busy(device) else (),
        )

    def run(self, device: Device, nominal_ns: int) -> int:
        """Let the device work on something; give the duration and move the clock by it.

        Raises
        ------
        DeviceLostError
            The script says that the device is lost by now.
        """
        self._check_lost(device)
        script = self._script(device)
        duration_ns = nominal_ns * self._random.lognormvariate(0, script.noise_share)
        duration_ns *= 1 + script.drift_share_per_s * self.clock.now_ns / 1e9
        duration_ns /= self._speed_share(device)
        if self._random.random() < script.outlier_share:
            duration_ns *= script.outlier_factor
        self.clock.advance(round(duration_ns))
        return round(duration_ns)

    def _script(self, device: Device) -> Script:
        return self.scripts.get(device.index, Script())

    def _is_busy(self, device: Device) -> bool:
        self.n_readings += 1
        return self.n_readings <= self._script(device).busy_readings

    def _speed_share(self, device: Device) -> float:
        now_ns = self.clock.now_ns
        throttles = self._script(device).throttles
        shares = [each.share for each in throttles if each.start_ns <= now_ns < each.end_ns]
        return min(shares, default=1.0)

    def _check_lost(self, device: Device) -> None:
        lost_at_ns = self._script(device).lost_at_ns
        if lost_at_ns is not None and self.clock.now_ns >= lost_at_ns:
            message = f"device {device.uuid} is lost"
            raise DeviceLostError(message)
