"""AMD devices, through the AMD SMI library if its binding `amdsmi` finds it.

The binding comes with ROCm and requires one version of the library. Without it the import raises
various errors of its loader, so all of them are treated as "not installed".
"""

from __future__ import annotations

from contextlib import redirect_stdout
from functools import cached_property
from io import StringIO
from typing import Any, Final

from longpole.devices.amd import amd_identity, known_text
from longpole.devices.protocol import Device, DeviceLostError, Process, Provider, Reading

__all__ = ["AmdLibraryProvider"]

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
        watts = _number(cap.get("power_cap"))
        found = {
            "power_limit": None if watts is None else f"{_watts(watts):.0f} W",
            "compute_partition": self._ask("amdsmi_get_gpu_compute_partition", handle),
            "memory_partition": self._ask("amdsmi_get_gpu_memory_partition", handle),
        }
        return {name: str(value) for name, value in found.items() if value not in (None, "N/A")}

    def read(self, device: Device) -> Reading:
        """Read clocks, reasons, temperature, power, memory and processes."""
        handle, smi = self._handle(device), self._smi
        clock = self._ask("amdsmi_get_clock_info", handle, smi.AmdSmiClkType.GFX) or {}
        memory_clock = self._ask("amdsmi_get_clock_info", handle, smi.AmdSmiClkType.MEM) or {}
        power = self._ask("amdsmi_get_power_info", handle) or {}
        sensor = smi.AmdSmiTemperatureType.HOTSPOT, smi.AmdSmiTemperatureMetric.CURRENT
        percent = _number((self._ask("amdsmi_get_gpu_activity", handle) or {}).get("gfx_activity"))
        used_mib = _number((self._ask("amdsmi_get_gpu_vram_usage", handle) or {}).get("vram_used"))
        errors = self._ask("amdsmi_get_gpu_total_ecc_count", handle) or {}
        return Reading(
            clock_mhz=_number(clock.get("clk")),
            clock_max_mhz=_number(clock.get("max_clk")),
            memory_clock_mhz=_number(memory_clock.get("clk")),
            temperature_c=_number(self._ask("amdsmi_get_temp_metric", handle, *sensor)),
            power_w=_number(power.get("current_socket_power")),
            utilisation_share=None if percent is None else percent / 100,
            memory_used_bytes=None if used_mib is None else used_mib * _MIB,
            throttle_reasons=self._reasons(handle),
            ecc_errors=_number(errors.get("uncorrectable_count")),
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
        total_mib = _number(usage.get("vram_total"))
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
        return tuple(Process(each["pid"], _number(each.get("mem")), "compute") for each in found)

    def _ask(self, name: str, *arguments: object) -> Any:
        """Call a function of the library; None means "not supported here"."""
        try:
            return getattr(self._smi, name)(*arguments)
        except self._smi.AmdSmiException:
            return None


def _watts(cap: int) -> float:
    """Read a power cap, which is in watts or microwatts depending on the release."""
    return cap / _MICRO if cap >= _MICRO else cap


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
