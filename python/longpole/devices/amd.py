"""AMD devices, through `amd-smi`.

Its JSON differs between releases: lists or objects on top, plain figures or `{"value": .., "unit":
..}`, `N/A` for unknown values. Values are searched by name, and missing ones are unknown.

The identity is the serial number of the chip in ROCR's form (`GPU-` and sixteen hexadecimal
digits), so that locks agree with those of the AMD SMI library.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any, Final

from longpole.devices.protocol import Device, DeviceLostError, Provider, Reading

__all__ = ["AmdSmiProvider", "amd_identity", "known_text"]

TOOL_SECONDS: Final = 20
UNIT_BYTES: Final = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


class AmdSmiProvider(Provider):
    """Devices as reported by `amd-smi`."""

    def list_devices(self) -> list[Device]:
        """List the devices in the order of the tool."""
        return parse_amd_smi_static(_run("amd-smi", "static", "--json"))

    def read(self, device: Device) -> Reading:
        """Read clocks, temperature, power, memory and errors."""
        answer = _run("amd-smi", "metric", "--json", "--gpu", str(device.index))
        found = _gpus(answer)
        if not found:
            message = f"device {device.uuid} is lost: amd-smi does not answer"
            raise DeviceLostError(message)
        return parse_amd_smi_metric(found[0])


def parse_amd_smi_static(answer: Any) -> list[Device]:
    """Parse the output of `amd-smi static --json`."""
    return [
        Device(
            uuid=amd_identity(_at(gpu, "asic", "asic_serial"), _at(gpu, "bus", "bdf")),
            vendor="amd",
            token=str(gpu.get("gpu", index)),
            index=int(gpu.get("gpu", index)),
            name=known_text(_at(gpu, "asic", "market_name")) or "AMD GPU",
            pci=known_text(_at(gpu, "bus", "bdf")),
            arch=known_text(_at(gpu, "asic", "target_graphics_version")),
            memory_bytes=_bytes(_at(gpu, "vram", "size")),
            driver=known_text(_at(gpu, "driver", "version")),
        )
        for index, gpu in enumerate(_gpus(answer))
    ]


def parse_amd_smi_metric(gpu: Any) -> Reading:
    """Parse one device in the output of `amd-smi metric --json`."""
    percent = _number(_at(gpu, "usage", "gfx_activity"))
    clock = _at(gpu, "clock", "gfx_0") or _at(gpu, "clock", "gfx")
    celsius = _number(_at(gpu, "temperature", "hotspot"))
    return Reading(
        clock_mhz=_integer(_at(clock, "clk")),
        clock_max_mhz=_integer(_at(clock, "max_clk")),
        memory_clock_mhz=_integer(_at(gpu, "clock", "mem_0", "clk")),
        temperature_c=celsius if celsius is not None else _number(_at(gpu, "temperature", "edge")),
        power_w=_number(_at(gpu, "power", "socket_power")),
        utilisation_share=None if percent is None else percent / 100,
        memory_used_bytes=_bytes(_at(gpu, "mem_usage", "used_vram")),
        ecc_errors=_integer(_at(gpu, "ecc", "total_uncorrectable_count")),
    )


def _run(tool: str, *arguments: str) -> Any:
    path = shutil.which(tool)
    if path is None:
        return None
    try:
        answer = subprocess.run(  # noqa: S603
            [path, *arguments], capture_output=True, text=True, timeout=TOOL_SECONDS, check=True
        )
        return json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def _gpus(answer: Any) -> list[Any]:
    """Return the list of devices: on top, or below `gpu_data` in newer releases."""
    found = answer.get("gpu_data", []) if isinstance(answer, dict) else answer
    return [gpu for gpu in found or [] if isinstance(gpu, dict)]


def amd_identity(serial: Any, pci: Any) -> str:
    """Return the serial number of a chip in ROCR's form, or else its address."""
    try:
        return f"GPU-{int(str(serial), 16):016x}"
    except ValueError:
        return f"AMD-{pci}"  # chips of consumer boards have no serial number


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def known_text(value: Any) -> str | None:
    """Return a string, or None for a placeholder of an unknown value."""
    return None if value in (None, "", "N/A") else str(value)


def _number(value: Any) -> float | None:
    if isinstance(value, dict):
        value = value.get("value")
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _integer(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _bytes(value: Any) -> int | None:
    number = _integer(value)
    unit = value.get("unit", "MB") if isinstance(value, dict) else "MB"
    return None if number is None else number * UNIT_BYTES.get(unit, 1)
