"""The data about a device, the interface of its provider, and whether another program uses it."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from longpole.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Vendor = Literal["nvidia", "amd", "cpu", "fake"]

# A device counts as used if another program allocates this much; a bare display server or
# persistence daemon stays below it.
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
"""Reasons for a low clock that invalidate a time: hardware and heat.

Not a power cap, which is normal at full load. The last four are AMD's.
"""


class DeviceLostError(DeviceError):
    """The device no longer responds."""


@dataclass(frozen=True, slots=True)
class Device:
    """One device, by properties that do not change while the machine runs.

    `uuid` is its identity for locks and records, because an index changes its meaning after a
    restart, in a container or with a visibility list. `token` selects the device in a program; see
    `visibility`. `parent` is the UUID of the device that an instance (MIG) is a part of.
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
        """Return the fields by name, for a record."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Process:
    """A program with memory on a device."""

    pid: int
    memory_bytes: int | None
    kind: Literal["compute", "graphics"]


@dataclass(frozen=True, slots=True)
class Reading:
    """The state of a device at one time. None for values that could not be read, never 0."""

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
        """Reason why another program seems to use the device, or None.

        This is only a guess: processes of other containers are not listed, and a program may be
        between two kernels.
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
        """Return the known values by name, for a record."""
        return {name: value for name, value in asdict(self).items() if value not in (None, ())}


class Provider(ABC):
    """Access to the devices of one vendor."""

    reads_fast = False
    """Whether a reading is cheap enough to take before and after every job."""

    @abstractmethod
    def list_devices(self) -> Sequence[Device]:
        """List every device of the machine, regardless of what is visible to this process.

        Empty if the vendor's library or tool is missing, which is normal on a machine without such
        a device.
        """

    def settings(self, device: Device) -> dict[str, str]:  # noqa: ARG002 - some providers do
        """Return the settings of a device: power limit, persistence, partitions and so on.

        Settings that cannot be read quickly are left out.
        """
        return {}

    @abstractmethod
    def read(self, device: Device) -> Reading:
        """Read the state of a device.

        Raises
        ------
        DeviceLostError
            The device no longer responds.
        """


Busy: TypeAlias = Literal["refuse", "wait", "allow"]

POLL_S: Final = 0.5

# Utilisation is the mean of the last second, so it stays high after a program has ended.
SETTLE_S: Final = 2.0


class DeviceBusyError(DeviceError):
    """Another program uses the device: measurements on it would mean little."""


def wait_until_idle(
    device: Device,
    provider: Provider | None,
    busy: Busy,
    given_up: Callable[[], bool] = lambda: False,
) -> None:
    """Check whether another program uses a device, and raise, wait, or use it anyway.

    Two kinds are not checked: CPUs, which are always in use, and devices whose state takes long to
    read. A device without processes gets two seconds, since its utilisation is delayed.

    Raises
    ------
    DeviceBusyError
        The device is busy, and `busy` is `refuse`.
    """
    if busy == "allow" or provider is None or not provider.reads_fast or device.vendor == "cpu":
        return
    deadline = time.monotonic() + SETTLE_S
    while reason := (reading := provider.read(device)).busy:
        if busy == "refuse" and (reading.compute_pids or time.monotonic() >= deadline):
            message = (
                f"device {device.uuid} is busy: {reason}\n"
                "hint: --busy wait waits for it, --busy allow measures all the same"
            )
            raise DeviceBusyError(message)
        if given_up():
            return
        time.sleep(POLL_S)
