"""The processor as a single device, so that one job is measured at a time."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path
from typing import Final

from longpole.devices.protocol import Device, Provider, Reading

__all__ = ["CpuProvider"]

CPU_INFO: Final = Path("/proc/cpuinfo")
MACHINE_ID: Final = Path("/etc/machine-id")
FREQUENCY: Final = Path("/sys/devices/system/cpu/cpu0/cpufreq")


class CpuProvider(Provider):
    """The processor of this machine, from information that every user can read."""

    reads_fast = True

    def list_devices(self) -> list[Device]:
        """List the one processor."""
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
