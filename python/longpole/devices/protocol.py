"""What is known about a device, and what a provider of devices must answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from longpole.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "SLOWDOWNS",
    "Device",
    "DeviceLostError",
    "Process",
    "Provider",
    "Reading",
    "Vendor",
]

Vendor = Literal["nvidia", "amd", "cpu", "fake"]

# A device counts as used when another program keeps this much: a bare display
# server or a persistence daemon stays below it.
BUSY_MEMORY_BYTES: Final = 1 << 30
BUSY_UTILISATION_SHARE: Final = 0.05


SLOWDOWNS: Final = frozenset(
    {
        "hw_slowdown",
        "sw_thermal_slowdown",
        "hw_thermal_slowdown",
        "hw_power_brake",
        "prochot_thrm",
        "socket_thrm",
        "vr_thrm",
        "hbm_thrm",
    }
)
"""Reasons for a low clock that spoil a time: hardware and heat.

A cap of the power is normal at full load and none of them. The last four are AMD's.
"""


class DeviceLostError(DeviceError):
    """The device was there and does not answer any more."""


@dataclass(frozen=True, slots=True)
class Device:
    """One device, by what does not change while the machine runs.

    `uuid` is its identity: locks and records go by it, because an index means
    something else after a restart, in a container or below a visibility list.
    `token` is how a program is told to use it; see `visibility`. `parent` is the UUID of the
    device that an instance (MIG) is a part of.
    """

    uuid: str
    vendor: Vendor
    token: str
    index: int = 0
    name: str = ""
    pci: str | None = None
    arch: str | None = None
    memory_bytes: int | None = None
    driver: str | None = None
    parent: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the fields by name, for a record."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Process:
    """A program that holds memory of a device."""

    pid: int
    memory_bytes: int | None
    kind: Literal["compute", "graphics"]


@dataclass(frozen=True, slots=True)
class Reading:
    """The state of a device at one moment. None is what could not be read, never 0."""

    clock_mhz: int | None = None
    clock_max_mhz: int | None = None
    memory_clock_mhz: int | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    utilisation_share: float | None = None
    memory_used_bytes: int | None = None
    throttle_reasons: tuple[str, ...] = ()
    ecc_errors: int | None = None
    processes: tuple[Process, ...] = ()

    @property
    def busy(self) -> str | None:
        """Why the device looks as if another program uses it, or None.

        It can only look so: processes of other containers are not listed, and
        a program may be between two kernels.
        """
        if compute := self.compute_pids:
            return "used by process " + ", ".join(map(str, compute))
        if (self.utilisation_share or 0) > BUSY_UTILISATION_SHARE:
            return f"{self.utilisation_share:.0%} utilised"
        if (self.memory_used_bytes or 0) > BUSY_MEMORY_BYTES:
            return f"{self.memory_used_bytes or 0:,} bytes of its memory are in use"
        return None

    @property
    def compute_pids(self) -> list[int]:
        """The processes that compute on the device."""
        return [process.pid for process in self.processes if process.kind == "compute"]

    def to_dict(self) -> dict[str, Any]:
        """Return what is known by name, for a record."""
        return {name: value for name, value in asdict(self).items() if value not in (None, ())}


class Provider(ABC):
    """A way to learn about the devices of one vendor."""

    reads_fast = False
    """Whether a reading is cheap enough to take before and after every job."""

    @abstractmethod
    def list_devices(self) -> Sequence[Device]:
        """List every device of the machine, whatever is visible to this process.

        The list is empty where the vendor's library or tool is missing: that
        is no error on a machine without such a device.
        """

    def settings(self, device: Device) -> dict[str, str]:  # noqa: ARG002 - some providers do
        """Say how a device is set, in words: power limit, persistence, partitions and the like.

        What cannot be read, or not fast, is left out.
        """
        return {}

    @abstractmethod
    def read(self, device: Device) -> Reading:
        """Read the state of a device.

        Raises
        ------
        DeviceLostError
            It does not answer any more.
        """
