"""NVIDIA devices, through NVML if `nvidia-ml-py` is installed, else through `nvidia-smi`.

NVML creates no CUDA context: it uses no device memory, and works while the device is computing.
Clocks are read, never set. NVML lists every device of the machine, in the order of the PCI bus,
regardless of `CUDA_VISIBLE_DEVICES`.
"""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

from longpole.devices.protocol import Device, DeviceLostError, Process, Provider, Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Bits of the clock event reasons (nvml.h). A power cap is normal under load and is recorded like
# the others; readers of a record decide which of them invalidate a measurement.
REASONS: Final = {
    0x1: "idle",
    0x2: "application_clocks",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake",
    0x100: "display_clock",
}
SMI_SECONDS: Final = 20
MIB: Final = 1 << 20
WATT_MW: Final = 1000
CUDA_VERSION: Final = 1000  # 12080 is 12.8
COMPUTE_MODES: Final = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive"}


class NvmlProvider(Provider):
    """NVML through its Python binding; no devices if either is missing."""

    reads_fast = True

    def list_devices(self) -> list[Device]:
        """List the devices in the order of the PCI bus.

        A partitioned device (MIG) is listed as its instances, since programs can only use these.
        """
        nvml = self._nvml
        if nvml is None:
            return []
        driver = nvml.nvmlSystemGetDriverVersion()
        found: list[Device] = []
        for index in range(nvml.nvmlDeviceGetCount()):
            handle = self._told("nvmlDeviceGetHandleByIndex", index)
            device = None if handle is None else self._device(handle, driver)
            if device is not None:
                found += self._instances(handle, device) or [device]
        return [replace(device, index=number) for number, device in enumerate(found)]

    def settings(self, device: Device) -> dict[str, str]:
        """Return the settings of a device."""
        if self._nvml is None:
            return {}
        handle = self._told("nvmlDeviceGetHandleByUUID", device.parent or device.uuid)
        limit_mw = self._told("nvmlDeviceGetEnforcedPowerLimit", handle)
        cuda = self._told("nvmlSystemGetCudaDriverVersion")
        mode = self._told("nvmlDeviceGetComputeMode", handle)
        mig = self._told("nvmlDeviceGetMigMode", handle)
        ecc = self._told("nvmlDeviceGetEccMode", handle)
        found = {
            "power_limit": limit_mw and f"{limit_mw / WATT_MW:.0f} W",
            "persistence": _on_or_off(self._told("nvmlDeviceGetPersistenceMode", handle)),
            "compute_mode": COMPUTE_MODES.get(mode),
            "mig": _on_or_off(mig and mig[0]),
            "ecc": _on_or_off(ecc and ecc[0]),
            "cuda_driver": cuda and f"{cuda // CUDA_VERSION}.{cuda % CUDA_VERSION // 10}",
        }
        return {name: value for name, value in found.items() if value}

    def read(self, device: Device) -> Reading:
        """Read clocks, throttle reasons, temperature, power, memory and processes."""
        nvml = self._nvml
        if nvml is None:
            message = "NVML is gone"
            raise DeviceLostError(message)
        handle = self._ask(device, lambda: nvml.nvmlDeviceGetHandleByUUID(device.uuid))

        def ask(name: str, *arguments: object) -> Any:
            return self._ask(device, lambda: getattr(nvml, name)(handle, *arguments))

        power_mw = ask("nvmlDeviceGetPowerUsage")
        utilisation = ask("nvmlDeviceGetUtilizationRates")
        memory = ask("nvmlDeviceGetMemoryInfo")
        return Reading(
            clock_mhz=ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            clock_max_mhz=ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM),
            memory_clock_mhz=ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
            temperature_c=ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
            power_w=None if power_mw is None else power_mw / 1000,
            utilisation_share=None if utilisation is None else utilisation.gpu / 100,
            memory_used_bytes=None if memory is None else memory.used,
            throttle_reasons=_reasons(ask("nvmlDeviceGetCurrentClocksThrottleReasons")),
            ecc_errors=ask("nvmlDeviceGetTotalEccErrors", *self._uncorrected_errors()),
            processes=(
                *_processes(ask("nvmlDeviceGetComputeRunningProcesses"), "compute"),
                *_processes(ask("nvmlDeviceGetGraphicsRunningProcesses"), "graphics"),
            ),
        )

    @cached_property
    def _nvml(self) -> Any:
        """Return the initialised binding, or None on a machine without such a device."""
        try:
            import pynvml
        except ImportError:
            return None
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError:
            return None
        return pynvml

    def _told(self, name: str, *arguments: object) -> Any:
        """Return an optional value; None if this device or driver does not report it."""
        nvml = self._nvml
        try:
            return getattr(nvml, name)(*arguments)
        except nvml.NVMLError:
            return None

    def _instances(self, handle: Any, parent: Device) -> list[Device]:
        """List the instances of a partitioned device."""
        mode = self._told("nvmlDeviceGetMigMode", handle)
        if not (mode and mode[0]):
            return []
        found: list[Device] = []
        for number in range(self._told("nvmlDeviceGetMaxMigDeviceCount", handle) or 0):
            instance = self._told("nvmlDeviceGetMigDeviceHandleByIndex", handle, number)
            uuid = None if instance is None else self._told("nvmlDeviceGetUUID", instance)
            if uuid is not None:
                memory = self._told("nvmlDeviceGetMemoryInfo", instance)
                found.append(
                    replace(
                        parent,
                        uuid=uuid,
                        token=uuid,
                        name=self._told("nvmlDeviceGetName", instance) or parent.name,
                        memory_bytes=memory and memory.total,
                        parent=parent.uuid,
                    )
                )
        return found

    def _device(self, handle: Any, driver: str) -> Device | None:
        """Describe a device; None if not even its UUID is available."""
        ask = self._told
        uuid = ask("nvmlDeviceGetUUID", handle)
        if uuid is None:
            return None
        capability = ask("nvmlDeviceGetCudaComputeCapability", handle)
        pci = ask("nvmlDeviceGetPciInfo", handle)
        memory = ask("nvmlDeviceGetMemoryInfo", handle)
        return Device(
            uuid=uuid,
            vendor="nvidia",
            token=uuid,
            name=ask("nvmlDeviceGetName", handle) or "",
            pci=pci and pci.busId.lower(),
            arch=capability and "sm_{}{}".format(*capability),
            memory_bytes=memory and memory.total,
            driver=driver,
        )

    def _uncorrected_errors(self) -> tuple[int, int]:
        nvml = self._nvml
        return nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC

    def _ask(self, device: Device, question: Callable[[], Any]) -> Any:
        """Query a device; None means "not supported here", an exception "no longer there"."""
        nvml = self._nvml
        try:
            return question()
        except (nvml.NVMLError_GpuIsLost, nvml.NVMLError_NotFound) as error:
            message = f"device {device.uuid} is lost: {error}"
            raise DeviceLostError(message) from error
        except nvml.NVMLError:
            return None


class NvidiaSmiProvider(Provider):
    """The same through `nvidia-smi`, which comes with every driver."""

    STATIC = (
        "index",
        "uuid",
        "name",
        "pci.bus_id",
        "compute_cap",
        "memory.total",
        "driver_version",
    )
    STATE = (
        "clocks.sm",
        "clocks.max.sm",
        "clocks.mem",
        "temperature.gpu",
        "power.draw",
        "utilization.gpu",
        "memory.used",
        "clocks_throttle_reasons.active",
        "ecc.errors.uncorrected.volatile.total",
    )

    def list_devices(self) -> list[Device]:
        """List the devices in the order of the PCI bus."""
        return [_parse_device(row) for row in _smi_rows(self.STATIC)]

    def read(self, device: Device) -> Reading:
        """Read clocks, throttle reasons, temperature, power and memory."""
        rows = _smi_rows(self.STATE, f"--id={device.uuid}")
        if not rows:
            message = f"device {device.uuid} is lost: nvidia-smi does not answer"
            raise DeviceLostError(message)
        return _parse_reading(rows[0])


def _processes(found: Sequence[Any] | None, kind: Literal["compute", "graphics"]) -> list[Process]:
    return [Process(each.pid, each.usedGpuMemory, kind) for each in found or ()]


def _on_or_off(state: int | None) -> str | None:
    return None if state is None else ("on" if state else "off")


def _reasons(bits: int | None) -> tuple[str, ...]:
    return tuple(name for bit, name in REASONS.items() if (bits or 0) & bit)


def _smi_rows(fields: Sequence[str], *options: str) -> list[list[str]]:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    query = [tool, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits", *options]
    try:
        answer = subprocess.run(  # noqa: S603
            query, capture_output=True, text=True, timeout=SMI_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    rows = csv.reader(io.StringIO(answer.stdout), skipinitialspace=True)
    return [row for row in rows if len(row) == len(fields)]


def _parse_device(row: Sequence[str]) -> Device:
    index, uuid, name, pci, capability, memory_mib, driver = row
    memory = _number(memory_mib)
    return Device(
        uuid=uuid,
        vendor="nvidia",
        token=uuid,
        index=int(index),
        name=name,
        pci=pci.lower(),
        arch=f"sm_{capability.replace('.', '')}" if _number(capability) else None,
        memory_bytes=None if memory is None else int(memory) * MIB,
        driver=driver,
    )


def _parse_reading(row: Sequence[str]) -> Reading:
    clock, clock_max, memory_clock, celsius, watts, percent, used_mib, reasons, ecc = row
    utilisation, used = _number(percent), _number(used_mib)
    return Reading(
        clock_mhz=_integer(clock),
        clock_max_mhz=_integer(clock_max),
        memory_clock_mhz=_integer(memory_clock),
        temperature_c=_number(celsius),
        power_w=_number(watts),
        utilisation_share=None if utilisation is None else utilisation / 100,
        memory_used_bytes=None if used is None else int(used) * MIB,
        throttle_reasons=_reasons(int(reasons, 16) if reasons.startswith("0x") else None),
        ecc_errors=_integer(ecc),
    )


def _integer(text: str) -> int | None:
    number = _number(text)
    return None if number is None else int(number)


def _number(text: str) -> float | None:
    """Parse a figure; `[N/A]`, `[Not Supported]` and similar are unknown."""
    try:
        return float(text)
    except ValueError:
        return None
