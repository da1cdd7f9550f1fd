"""AMD devices, through the AMD SMI library or the tool `amd-smi`.

The binding of the library, `amdsmi`, comes with ROCm and requires one version of the library.
Without it the import raises various errors of its loader, so all of them are treated as "not
installed".

The JSON of the tool differs between releases: lists or objects on top, plain figures or `{"value":
.., "unit": ..}`, `N/A` for unknown values. Values are searched by name, and missing ones are
unknown.

The identity is the serial number of the chip in ROCR's form (`GPU-` and sixteen hexadecimal
digits), so that locks agree between the two.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from contextlib import redirect_stdout
from functools import cached_property
from io import StringIO
from typing import Any, Final

from longpole.devices.protocol import Device, DeviceLostError, Process, Provider, Reading

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


_MIB: Final = 1 << 20
_MICRO: Final = 1_000_000
_LIMITS: Final = ("prochot_thrm", "socket_thrm", "vr_thrm", "hbm_thrm")
_POWER: Final = "ppt_pwr"


class AmdLibraryProvider(Provider):
    """The AMD SMI library through its Python binding; no devices if either is missing."""

    reads_fast = True

    def list_devices(self) -> list[Device]:
        """List the devices in the order of the library."""
        return [self._device(index, handle) for index, handle in enumerate(self._handles)]

    def settings(self, device: Device) -> dict[str, str]:
        """Return the settings of a device."""
        handle = self._handle(device)
        cap = self._ask("amdsmi_get_power_cap_info", handle) or {}
        watts = _whole(cap.get("power_cap"))
        found = {
            "power_limit": None if watts is None else f"{_watts(watts):.0f} W",
            "compute_partition": self._ask("amdsmi_get_gpu_compute_partition", handle),
            "memory_partition": self._ask("amdsmi_get_gpu_memory_partition", handle),
        }
        return {name: str(value) for name, value in found.items() if value not in (None, "N/A")}

    def read(self, device: Device) -> Reading:
        """Read clocks, throttle reasons, temperature, power, memory and processes."""
        handle, smi = self._handle(device), self._smi
        clock = self._ask("amdsmi_get_clock_info", handle, smi.AmdSmiClkType.GFX) or {}
        memory_clock = self._ask("amdsmi_get_clock_info", handle, smi.AmdSmiClkType.MEM) or {}
        power = self._ask("amdsmi_get_power_info", handle) or {}
        sensor = smi.AmdSmiTemperatureType.HOTSPOT, smi.AmdSmiTemperatureMetric.CURRENT
        percent = _whole((self._ask("amdsmi_get_gpu_activity", handle) or {}).get("gfx_activity"))
        used_mib = _whole((self._ask("amdsmi_get_gpu_vram_usage", handle) or {}).get("vram_used"))
        errors = self._ask("amdsmi_get_gpu_total_ecc_count", handle) or {}
        return Reading(
            clock_mhz=_whole(clock.get("clk")),
            clock_max_mhz=_whole(clock.get("max_clk")),
            memory_clock_mhz=_whole(memory_clock.get("clk")),
            temperature_c=_whole(self._ask("amdsmi_get_temp_metric", handle, *sensor)),
            power_w=_whole(power.get("current_socket_power")),
            utilisation_share=None if percent is None else percent / 100,
            memory_used_bytes=None if used_mib is None else used_mib * _MIB,
            throttle_reasons=self._reasons(handle),
            ecc_errors=_whole(errors.get("uncorrectable_count")),
            processes=self._processes(handle),
        )

    @cached_property
    def _smi(self) -> Any:
        """Return the initialised binding, or None on a machine without such a device."""
        try:
            with redirect_stdout(StringIO()):  # it prints missing devices
                import amdsmi
            amdsmi.amdsmi_init()
        except Exception:  # noqa: BLE001 - the loader of the binding raises KeyError, OSError, ...
            return None
        return amdsmi

    @cached_property
    def _handles(self) -> list[Any]:
        if self._smi is None:
            return []
        try:
            return list(self._smi.amdsmi_get_processor_handles())
        except self._smi.AmdSmiException:
            return []

    def _device(self, index: int, handle: Any) -> Device:
        asic = self._ask("amdsmi_get_gpu_asic_info", handle) or {}
        driver = self._ask("amdsmi_get_gpu_driver_info", handle) or {}
        usage = self._ask("amdsmi_get_gpu_vram_usage", handle) or {}
        pci = (self._ask("amdsmi_get_gpu_device_bdf", handle) or "").lower()
        total_mib = _whole(usage.get("vram_total"))
        return Device(
            uuid=amd_identity(asic.get("asic_serial"), pci),
            vendor="amd",
            token=str(index),
            index=index,
            name=known_text(asic.get("market_name")) or "AMD GPU",
            pci=pci or None,
            arch=known_text(asic.get("target_graphics_version")),
            memory_bytes=None if total_mib is None else total_mib * _MIB,
            driver=known_text(driver.get("driver_version")),
        )

    def _handle(self, device: Device) -> Any:
        if device.index >= len(self._handles):
            message = f"device {device.uuid} is lost: the AMD SMI library does not list it"
            raise DeviceLostError(message)
        return self._handles[device.index]

    def _reasons(self, handle: Any) -> tuple[str, ...]:
        status = self._ask("amdsmi_get_violation_status", handle) or {}
        return tuple(each for each in (_POWER, *_LIMITS) if status.get(f"active_{each}") is True)

    def _processes(self, handle: Any) -> tuple[Process, ...]:
        found = self._ask("amdsmi_get_gpu_process_list", handle) or []
        return tuple(Process(each["pid"], _whole(each.get("mem")), "compute") for each in found)

    def _ask(self, name: str, *arguments: object) -> Any:
        """Call a function of the library; None means "not supported here"."""
        try:
            return getattr(self._smi, name)(*arguments)
        except self._smi.AmdSmiException:
            return None


def _watts(cap: int) -> float:
    """Read a power cap, which is in watts or microwatts depending on the release."""
    return cap / _MICRO if cap >= _MICRO else cap


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
