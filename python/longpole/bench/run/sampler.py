"""Reads the conditions of a device while jobs run on it: a thread in the guard's process.

The guard exists before a job begins and after its runner has died, so it also undoes changes: a
locked clock is released when the guard ends, even if the runner was killed. The module is loaded by
path and does not import longpole, which keeps the guard small.

Readings are lines of a file, each a JSON list with null for unknown values: the time in nanoseconds
(`time.perf_counter_ns`, the same for all processes of a machine), the clock in MHz, a list of the
reasons for it, nanoseconds or counts of violations so far, degrees Celsius, milliwatts, the total
microseconds that tasks have waited for a CPU, and the thermal events of the CPU so far.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import redirect_stdout, suppress
from io import StringIO
from threading import Event, Thread
from typing import Any

_PRESSURE = "/proc/pressure/cpu"

# Counts for the whole package, independent of the core of a program; not on virtual machines.
THERMAL = "/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count"

# Each time the file has grown by this size, readings are taken half as often.
_BYTES_A_RATE = 4 << 20
_RESETS = {"nvidia": "nvidia-smi --reset-gpu-clocks", "amd": "rocm-smi --resetperfdeterminism"}
_UNKNOWN = (None, (), None, None, None)
_MILLI = 1000


class Sampler:
    """Writes readings until closed.

    Parameters
    ----------
    text
        The configuration as JSON: `path` (of the file), `interval_s`, `vendor`, `uuid` and `pci`
        (of the device), `binding` (the folder of its library for Python, or None), `reasons` (names
        of the bits of NVML) and `lock_mhz` (the clock to hold, or None).
    """

    def __init__(self, text: str) -> None:
        self._wanted = wanted = json.loads(text)
        self._file = os.open(wanted["path"], os.O_WRONLY | os.O_APPEND)
        self._end = Event()
        self._device = _device(wanted)
        self._is_locked = False
        if wanted["lock_mhz"] is not None:
            self._write(self._locked(wanted["lock_mhz"]))
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop, and undo the changes to the device."""
        self._end.set()
        self._thread.join(timeout=5)
        if self._is_locked:
            _tell(_release(self._device, self._wanted))
        with suppress(OSError):
            os.unlink(self._wanted["path"])  # noqa: PTH108 - the guard imports no more than it needs

    def _locked(self, mhz: int) -> str:
        """Lock the clock; return why that failed, or an empty string."""
        if self._device is None:
            return "refused nothing here can lock the clock of this device\n"
        try:
            self._device.lock(mhz)
        except Exception as error:  # noqa: BLE001 - each library raises its own exceptions
            return f"refused {' '.join(str(error).split())}\n"
        self._is_locked = True
        return f"locked {mhz}\n"

    def _run(self) -> None:
        interval_s = self._wanted["interval_s"]
        written = 0
        while True:
            line = self._line()
            self._write(line)
            written += len(line)
            if self._end.wait(interval_s * 2 ** (written // _BYTES_A_RATE)):
                return

    def _line(self) -> str:
        fields = _UNKNOWN if self._device is None else self._device.read()
        return json.dumps([time.perf_counter_ns(), *fields, waited_us(), thermal_events()]) + "\n"

    def _write(self, line: str) -> None:
        with suppress(OSError):  # a full disk must not end a job
            os.write(self._file, line.encode())


def release_clock(text: str) -> None:
    """Release the clock of a device whose guard was killed."""
    wanted = json.loads(text)
    _tell(_release(_device(wanted), wanted))


def _release(device: _Nvidia | _Amd | None, wanted: dict[str, Any]) -> str | None:
    """Release the clock of a device; return the reason as a sentence if that fails."""
    why = "its library cannot be opened"
    if device is not None:
        try:
            device.release()
        except Exception as error:  # noqa: BLE001 - each library raises its own exceptions
            why = " ".join(str(error).split()) or type(error).__name__
        else:
            return None
    name = wanted.get("uuid") or wanted.get("pci") or "the device"
    return (
        f"the clock of {name} was locked at {wanted['lock_mhz']} MHz and could not be released: "
        f"{why}; it may stay locked until `{_RESETS.get(wanted['vendor'], 'a reset')}`"
    )


def _tell(failure: str | None) -> None:
    """Print a failure: the guard has no other way to report it, and only its user can fix it."""
    if failure is not None:
        with suppress(OSError, ValueError, AttributeError):  # standard error may be closed
            sys.stderr.write(f"longpole: {failure}\n")
            sys.stderr.flush()


class _Nvidia:
    """A device read through NVML."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        import pynvml

        self._nvml = pynvml
        pynvml.nvmlInit()
        self._handle = pynvml.nvmlDeviceGetHandleByUUID(wanted["uuid"])
        self._reasons = {int(bit): name for bit, name in wanted["reasons"].items()}

    def read(self) -> list[Any]:
        """Read clock, reasons, violations, temperature and power."""
        nvml = self._nvml
        bits = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        names = [name for bit, name in self._reasons.items() if (bits or 0) & bit]
        return [
            self._ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            names,
            self._violations_ns(),
            self._ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
            self._ask("nvmlDeviceGetPowerUsage"),
        ]

    def lock(self, mhz: int) -> None:
        """Lock the clock."""
        self._nvml.nvmlDeviceSetGpuLockedClocks(self._handle, mhz, mhz)

    def release(self) -> None:
        """Release the clock."""
        self._nvml.nvmlDeviceResetGpuLockedClocks(self._handle)

    def _violations_ns(self) -> int | None:
        """Sum the time that heat and the board limited the clock; a power cap does not count."""
        nvml = self._nvml
        policies = (
            nvml.NVML_PERF_POLICY_THERMAL,
            nvml.NVML_PERF_POLICY_BOARD_LIMIT,
            nvml.NVML_PERF_POLICY_RELIABILITY,
        )
        found = [self._ask("nvmlDeviceGetViolationStatus", policy) for policy in policies]
        known = [each.violationTime for each in found if each is not None]
        return sum(known) if known else None

    def _ask(self, name: str, *arguments: object) -> Any:
        try:
            return getattr(self._nvml, name)(self._handle, *arguments)
        except self._nvml.NVMLError:
            return None


class _Amd:
    """A device read through the AMD SMI library."""

    _LIMITS = ("prochot_thrm", "socket_thrm", "vr_thrm", "hbm_thrm")

    def __init__(self, wanted: dict[str, Any]) -> None:
        with redirect_stdout(StringIO()):  # it prints missing devices
            import amdsmi

        self._smi = amdsmi
        amdsmi.amdsmi_init()
        self._handle = next(
            handle
            for handle in amdsmi.amdsmi_get_processor_handles()
            if amdsmi.amdsmi_get_gpu_device_bdf(handle).lower() == wanted["pci"]
        )

    def read(self) -> list[Any]:
        """Read clock, reasons, violations, temperature and power."""
        smi = self._smi
        clock = self._ask("amdsmi_get_clock_info", smi.AmdSmiClkType.GFX) or {}
        status = self._ask("amdsmi_get_violation_status") or {}
        sensor = smi.AmdSmiTemperatureType.HOTSPOT, smi.AmdSmiTemperatureMetric.CURRENT
        power = self._ask("amdsmi_get_power_info") or {}
        watts = _number(power.get("current_socket_power"))
        limits = ("ppt_pwr", *self._LIMITS)
        names = [each for each in limits if status.get(f"active_{each}") is True]
        return [
            _number(clock.get("clk")),
            names,
            self._violations(status),
            _number(self._ask("amdsmi_get_temp_metric", *sensor)),
            None if watts is None else _MILLI * watts,
        ]

    def lock(self, mhz: int) -> None:
        """Lock the clock in AMD's determinism mode, in which it is at most this frequency."""
        self._smi.amdsmi_set_gpu_perf_determinism_mode(self._handle, mhz)

    def release(self) -> None:
        """Release the clock."""
        level = self._smi.AmdSmiDevPerfLevel.AUTO
        self._smi.amdsmi_set_gpu_perf_level(self._handle, level)

    def _violations(self, status: dict[str, Any]) -> int | None:
        found = [_number(status.get(f"acc_{each}")) for each in self._LIMITS]
        known = [each for each in found if each is not None]
        return sum(known) if known else None

    def _ask(self, name: str, *arguments: object) -> Any:
        try:
            return getattr(self._smi, name)(self._handle, *arguments)
        except self._smi.AmdSmiException:
            return None


def _device(wanted: dict[str, Any]) -> _Nvidia | _Amd | None:
    """Open the device's library; None if that is not possible."""
    kinds: dict[str | None, type[_Nvidia | _Amd]] = {"nvidia": _Nvidia, "amd": _Amd}
    kind = kinds.get(wanted["vendor"])
    if kind is None or wanted["binding"] is None:
        return None
    sys.path.append(wanted["binding"])
    try:
        return kind(wanted)
    except Exception:  # noqa: BLE001 - a library without its driver can raise anything
        return None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def waited_us() -> int | None:
    """Return how long tasks of all programs together have waited for a CPU."""
    text = _content(_PRESSURE).partition("\n")[0].rpartition("total=")[2]
    return int(text) if text.isdecimal() else None


def thermal_events(counter: str = THERMAL) -> int | None:
    """Return how often the CPU was throttled for heat."""
    text = _content(counter).strip()
    return int(text) if text.isdecimal() else None


def _content(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123 - the guard imports no more than it needs
            return file.read()
    except (OSError, ValueError):
        return ""
