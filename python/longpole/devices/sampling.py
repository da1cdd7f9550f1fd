"""Configuration of the sampler, which reads a device in a process that does not import longpole."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.devices.amd_library import AmdLibraryProvider
from longpole.devices.nvidia import REASONS, NvmlProvider

if TYPE_CHECKING:
    from longpole.devices.protocol import Device, Provider

__all__ = ["sampler_source"]

_BINDINGS: Final = {NvmlProvider: "pynvml", AmdLibraryProvider: "amdsmi"}


def sampler_source(device: Device | None, provider: Provider | None) -> dict[str, Any]:
    """Return which device to read, and where the library for it is.

    Parameters
    ----------
    device, provider
        As returned by `discover`; None reads only the processor.

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
