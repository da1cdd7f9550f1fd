"""Visibility variables: which devices this process may use, and how to pass one to a child.

CUDA, HIP and ROCR each read a list from the environment. An index in such a list counts the devices
of the level below, not those visible to the parent process: "my device 1" under
`CUDA_VISIBLE_DEVICES=4,5` is device 5, and a child with `CUDA_VISIBLE_DEVICES=1` would leave the
allocation. So a child gets a UUID if one is known, and the parent's own token otherwise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from longpole.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.devices.protocol import Device, Vendor

CUDA: Final = "CUDA_VISIBLE_DEVICES"
CUDA_ORDER: Final = "CUDA_DEVICE_ORDER"
HIP: Final = "HIP_VISIBLE_DEVICES"
ROCR: Final = "ROCR_VISIBLE_DEVICES"
GPU_ORDINAL: Final = "GPU_DEVICE_ORDINAL"
FAKE: Final = "LONGPOLE_FAKE_DEVICE"


def dev_select_flag(vendor: Vendor = "nvidia") -> str:
    """Return the variable that selects a device of the vendor."""
    return {"nvidia": CUDA, "amd": HIP, "fake": FAKE}.get(vendor, CUDA)


def visible_devices(devices: Sequence[Device], environ: Mapping[str, str]) -> list[Device]:
    """List the devices of one vendor that this process may use, in its own order.

    Parameters
    ----------
    devices
        Every device of the machine, in the order of the PCI bus.
    environ
        The environment with the variables.

    Raises
    ------
    DeviceError
        An index could mean two different devices.
    """
    vendor = devices[0].vendor if devices else "cpu"
    by_index = {device.index: device for device in devices}
    if vendor == "nvidia":
        return _narrow(by_index, _cuda_tokens(devices, environ))
    if vendor == "amd":
        # HIP counts the devices that ROCR makes visible, in this process and in a child.
        left = enumerate(_narrow(by_index, _tokens(environ, ROCR)))
        by_position = {number: replace(device, token=str(number)) for number, device in left}
        return _narrow(by_position, _hip_tokens(environ))
    return list(devices)


def child_changes(device: Device, environ: Mapping[str, str]) -> dict[str, str | None]:
    """Return the variables for a child that should see one device only; None removes one."""
    match device.vendor:
        case "nvidia" if device.token == device.uuid:
            return {CUDA: device.token, CUDA_ORDER: "PCI_BUS_ID"}
        case "nvidia":
            # The token is the parent's: it is valid as long as the order of devices is the same.
            return {CUDA: device.token}
        case "amd":
            # ROCR stays unchanged: HIP counts the devices that ROCR leaves, and both set to the
            # same index would hide everything.
            rivals = [name for name in (CUDA, GPU_ORDINAL) if name in environ]
            return {HIP: device.token, **dict.fromkeys(rivals)}
        case "fake":
            return {FAKE: device.token}
        case "cpu":
            return {}


def nth_token(index: int, environ: Mapping[str, str], vendor: Vendor = "nvidia") -> str:
    """Return the token for "my device `index`" if nothing is known about the devices.

    Raises
    ------
    DeviceError
        The device list of this process is shorter.
    """
    tokens = _hip_tokens(environ) if vendor == "amd" else _tokens(environ, CUDA)
    if tokens is None:
        return str(index)
    if index >= len(tokens):
        message = (
            f"device {index} is not visible: "
            f"{dev_select_flag(vendor)} lists {len(tokens)} of the machine's devices"
        )
        raise DeviceError(message)
    return tokens[index]


def visible_tokens(environ: Mapping[str, str]) -> list[str] | None:
    """List the entries of the visibility variables, for any vendor; None without any.

    Of several variables, the one applied last counts.
    """
    tokens = _hip_tokens(environ)
    return _tokens(environ, ROCR) if tokens is None else tokens


def _tokens(environ: Mapping[str, str], name: str) -> list[str] | None:
    """Split a list as the drivers do: None without a list; a duplicate entry hides all devices."""
    text = environ.get(name)
    if text is None:
        return None
    tokens = []
    for token in text.split(","):
        if not token.strip() or token.strip().startswith("-"):
            break  # the first invalid entry ends the list
        tokens.append(token.strip())
    return tokens if len(set(tokens)) == len(tokens) else []


def _hip_tokens(environ: Mapping[str, str]) -> list[str] | None:
    tokens = _tokens(environ, HIP)
    return _tokens(environ, CUDA) if tokens is None else tokens


def _cuda_tokens(devices: Sequence[Device], environ: Mapping[str, str]) -> list[str] | None:
    tokens = _tokens(environ, CUDA)
    by_index = any(token.isdecimal() for token in tokens or [])
    alike = len({device.name for device in devices}) <= 1
    if by_index and not alike and environ.get(CUDA_ORDER) != "PCI_BUS_ID":
        message = (
            f"{CUDA}={environ[CUDA]} means the fastest devices first, and these are not alike\n"
            f"hint: set {CUDA_ORDER}=PCI_BUS_ID, or name the devices by UUID"
        )
        raise DeviceError(message)
    return tokens


def _narrow(numbered: Mapping[int, Device], tokens: Sequence[str] | None) -> list[Device]:
    if tokens is None:
        return list(numbered.values())
    chosen: list[Device] = []
    for token in tokens:
        device = _find(numbered, token)
        if device is None or device in chosen:
            break
        chosen.append(device)
    return chosen


def _find(numbered: Mapping[int, Device], token: str) -> Device | None:
    if token.isdecimal():
        return numbered.get(int(token))
    devices = numbered.values()
    found = [device for device in devices if device.uuid.lower().startswith(token.lower())]
    return found[0] if len(found) == 1 else None
