"""Simulated devices, for tests and to try a plan before the machine is free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.devices.protocol import Device, DeviceLostError, Process, Provider, Reading

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["MOST_FAKE", "FakeProvider"]

_CLOCK_MHZ: Final = 1500
MOST_FAKE: Final = 1_024
_TEMPERATURE_C: Final = 40.0
_SOMEBODY: Final = (Process(1, None, "compute"),)


@dataclass(slots=True)
class FakeProvider(Provider):
    """A machine with `count` simulated devices.

    Devices whose index is in `lost` do not respond. The first `busy_readings` readings show a
    process of another program.
    """

    count: int = 1
    lost: Collection[int] = ()
    busy_readings: int = 0
    n_readings: int = 0
    reads_fast = True

    def list_devices(self) -> list[Device]:
        """List the devices, including lost ones."""
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

    def read(self, device: Device) -> Reading:
        """Return the same state every time."""
        if device.index in self.lost:
            message = f"device {device.uuid} is lost"
            raise DeviceLostError(message)
        self.n_readings += 1
        return Reading(
            clock_mhz=_CLOCK_MHZ,
            clock_max_mhz=_CLOCK_MHZ,
            temperature_c=_TEMPERATURE_C,
            processes=_SOMEBODY if self.n_readings <= self.busy_readings else (),
        )
