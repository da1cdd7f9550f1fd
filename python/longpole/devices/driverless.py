"""Devices without a driver: the CPU as a single device, and simulated ones.

One job at a time is measured on the CPU. Simulated devices are for tests, and to try a plan before
the machine is free.
"""

from __future__ import annotations

import hashlib
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.devices.protocol import Device, DeviceLostError, Process, Provider, Reading

if TYPE_CHECKING:
    from collections.abc import Collection

CPU_INFO: Final = Path("/proc/cpuinfo")
MACHINE_ID: Final = Path("/etc/machine-id")
FREQUENCY: Final = Path("/sys/devices/system/cpu/cpu0/cpufreq")


class CpuProvider(Provider):
    """The CPU of this machine, from information that every user can read."""

    reads_fast = True

    def list_devices(self) -> list[Device]:
        """List the one CPU device."""
        # The machine id should stay private, so its hash is the identity.
        identity = _read(MACHINE_ID) or platform.node()
        digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
        return [
            Device(
                uuid=f"CPU-{digest}",
                vendor="cpu",
                token="cpu",  # noqa: S106
                name=_model_name(),
                arch=platform.machine(),
                memory_bytes=_memory_bytes(),
            )
        ]

    def read(self, device: Device) -> Reading:  # noqa: ARG002
        """Read clock and load."""
        try:
            share = min(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        except OSError:
            share = None
        return Reading(
            clock_mhz=_mhz("scaling_cur_freq"),
            clock_max_mhz=_mhz("cpuinfo_max_freq"),
            utilisation_share=share,
        )


def _model_name() -> str:
    lines = (line.partition(":") for line in _read(CPU_INFO).splitlines())
    names = (value.strip() for key, _, value in lines if key.strip() == "model name")
    return next(names, platform.processor() or platform.machine())


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def _mhz(name: str) -> int | None:
    text = _read(FREQUENCY / name)
    return int(text) // 1000 if text.isdecimal() else None


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


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
