"""NVIDIA devices, through NVML where `nvidia-ml-py` is installed, else through `nvidia-smi`.

NVML creates no CUDA context: it takes no memory of the device, and works while
the device is computing. Clocks are read, never set. NVML lists every device of
the machine, in the order of the PCI bus, whatever `CUDA_VISIBLE_DEVICES` says.
"""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

from longpole.devices.protocol import Device, DeviceLostError, Process, Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.devices.protocol import Vendor

__all__ = ["NvidiaSmiProvider", "NvmlProvider"]

# Bits of the clock event reasons (nvml.h). A power cap is normal under load
# and is recorded like the others; which of them spoil a measurement is for the
# reader of the record to say.
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


class NvmlProvider:
    """NVML through its Python binding; no devices where either is missing."""

    vendor: Vendor = "nvidia"
    reads_fast = True

    def list_devices(self) -> list[Device]:
        """List the devices in the order of the PCI bus."""
        nvml = self._nvml
        if nvml is None:
            return []
        driver = nvml.nvmlSystemGetDriverVersion()
        devices = [self._device(index, driver) for index in range(nvml.nvmlDeviceGetCount())]
        return [device for device in devices if device is not None]

    def read(self, device: Device) -> Reading:
        """Read clocks, reasons, temperature, power, memory and processes."""
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
        """The binding, ready to be asked, or None on a machine without such a device."""
        try:
            import pynvml
        except ImportError:
            return None
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError:
            return None
        return pynvml

    def _device(self, index: int, driver: str) -> Device | None:
        """Describe a device; None when not even its UUID can be had."""
        nvml = self._nvml

        def ask(name: str, *arguments: object) -> Any:
            try:
                return getattr(nvml, name)(*arguments)
            except nvml.NVMLError:
                return None

        handle = ask("nvmlDeviceGetHandleByIndex", index)
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
            index=index,
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
        """Ask; None is "not supported here", an exception is "not there any more"."""
        nvml = self._nvml
        try:
            return question()
        except (nvml.NVMLError_GpuIsLost, nvml.NVMLError_NotFound) as error:
            message = f"device {device.uuid} is lost: {error}"
            raise DeviceLostError(message) from error
        except nvml.NVMLError:
            return None


class NvidiaSmiProvider:
    """The same from `nvidia-smi`, which comes with every driver."""

    vendor: Vendor = "nvidia"
    reads_fast = False

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
        """Read clocks, reasons, temperature, power and memory."""
        rows = _smi_rows(self.STATE, f"--id={device.uuid}")
        if not rows:
            message = f"device {device.uuid} is lost: nvidia-smi does not answer"
            raise DeviceLostError(message)
        return _parse_reading(rows[0])


def _processes(found: Sequence[Any] | None, kind: Literal["compute", "graphics"]) -> list[Process]:
    return [Process(each.pid, each.usedGpuMemory, kind) for each in found or ()]


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
    """Read a figure; `[N/A]`, `[Not Supported]` and their like are unknown."""
    try:
        return float(text)
    except ValueError:
        return None
