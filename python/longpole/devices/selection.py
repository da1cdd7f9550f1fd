"""Finds the devices, selects among them, and configures how one of them is sampled."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.devices.amd import AmdLibraryProvider, AmdSmiProvider
from longpole.devices.driverless import MOST_FAKE, CpuProvider, FakeProvider
from longpole.devices.nvidia import REASONS, NvidiaSmiProvider, NvmlProvider
from longpole.devices.protocol import Device
from longpole.devices.visibility import nth_token, visible_devices
from longpole.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.devices.protocol import Provider, Vendor

_MOST_DIGITS: Final = 9

# For each vendor the first provider that finds a device is used.
GPU_PROVIDERS: Final = (
    (NvmlProvider, NvidiaSmiProvider),
    (AmdLibraryProvider, AmdSmiProvider),
)


class Found(dict[Device, "Provider | None"]):
    """Devices in the order in which this process counts them, each with its provider."""


def discover(environ: Mapping[str, str] | None = None) -> Found:
    """Find the devices that this process may use.

    Parameters
    ----------
    environ
        Environment with the visibility variables; by default that of this process.

    Returns
    -------
    Found
        GPUs, or the CPU on a machine without any. Empty if the environment hides all GPUs.
    """
    environ = os.environ if environ is None else environ
    answers = [_first_answer(kinds) for kinds in GPU_PROVIDERS]
    found = Found()
    for provider, devices in answers:
        found.update(dict.fromkeys(visible_devices(devices, environ), provider))
    if not any(devices for _, devices in answers):
        processor = CpuProvider()
        found.update(dict.fromkeys(processor.list_devices(), processor))
    return found


def select(wanted: Sequence[str | int] | None, found: Found | None = None) -> Found:
    """Choose devices by the names that users give.

    Parameters
    ----------
    wanted
        Numbers count the devices visible to this process: 0 is its first device. Otherwise the
        beginning of a UUID, a PCI address, `cpu`, `fake:N` for N simulated devices, or `all`. None
        or an empty list means device 0.
    found
        Devices to choose from; by default the result of `discover`.

    Raises
    ------
    DeviceError
        A name matches no device, or more than one.
    """
    chosen = Found()
    found = discover() if found is None else found
    for name in wanted or [0]:
        chosen.update(_matching(str(name).strip(), found))
    return chosen


def unlisted(
    index: str | int, vendor: Vendor = "nvidia", environ: Mapping[str, str] | None = None
) -> Device:
    """Create a device from a bare number, without asking a driver.

    Only its visibility token is known, so its lock excludes only others that use the same token.
    """
    environ = os.environ if environ is None else environ
    number = str(index)
    token = nth_token(int(number), environ, vendor) if _is_number(number) else number
    uuid = token if token.upper().startswith(("GPU-", "MIG-")) else f"{vendor}-{token}"
    return Device(
        uuid=uuid, vendor=vendor, token=token, index=int(number) if _is_number(number) else 0
    )


def _first_answer(
    kinds: Sequence[type[Provider]],
) -> tuple[Provider, Sequence[Device]]:
    for kind in kinds:
        provider = kind()
        devices = provider.list_devices()
        if devices:
            break
    return provider, devices


def _matching(name: str, found: Found) -> Found:
    if name == "all":
        return found
    prefix, _, number = name.partition(":")
    if prefix == "fake" and number.isdecimal():
        if not (_is_number(number) and 1 <= int(number) <= MOST_FAKE):
            message = f"{name!r}: from 1 to {MOST_FAKE} devices can be simulated"
            raise DeviceError(message)
        fake = FakeProvider(count=int(number))
        return Found(dict.fromkeys(fake.list_devices(), fake))
    if name == "cpu":
        processor = CpuProvider()
        return Found(dict.fromkeys(processor.list_devices(), processor))
    fitting = [device for number, device in enumerate(found) if _is_called(device, number, name)]
    if len(fitting) == 1:
        return Found({fitting[0]: found[fitting[0]]})
    known = ", ".join(f"{number} ({device.uuid})" for number, device in enumerate(found)) or "none"
    complaint = "fits more than one device" if fitting else "is not a device here"
    message = f"{name!r} {complaint}; visible: {known}\nhint: run `longpole devices`"
    raise DeviceError(message)


def _is_number(text: str) -> bool:
    """Whether a string can be a device number; Python refuses to convert very long ones."""
    return text.isdecimal() and len(text) <= _MOST_DIGITS


def _is_called(device: Device, number: int, name: str) -> bool:
    if _is_number(name):
        return number == int(name)
    return device.uuid.lower().startswith(name.lower()) or device.pci == name.lower()


_BINDINGS: Final = {NvmlProvider: "pynvml", AmdLibraryProvider: "amdsmi"}


def sampler_source(device: Device | None, provider: Provider | None) -> dict[str, Any]:
    """Return which device to read, and where the library for it is.

    Parameters
    ----------
    device, provider
        As returned by `discover`; None reads only the CPU.

    Examples
    --------
    >>> sampler_source(None, None)["binding"] is None
    True
    """
    name = _BINDINGS.get(type(provider)) if provider is not None else None
    spec = find_spec(name) if name is not None else None
    folder = None
    if spec is not None and spec.origin is not None:
        place = Path(spec.origin).parent
        folder = str(place.parent if spec.submodule_search_locations else place)
    return {
        "vendor": None if device is None else device.vendor,
        "uuid": None if device is None else device.parent or device.uuid,
        "pci": None if device is None else device.pci,
        "binding": folder,
        "reasons": REASONS,
    }
