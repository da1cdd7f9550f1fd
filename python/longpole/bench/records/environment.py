"""The surroundings of a measurement: a number means little without them."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import socket
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["fingerprint", "fingerprint_changes"]

# Asked for by their metadata: none of them is imported.
LIBRARIES: Final = ("torch", "triton", "jax", "cupy", "numpy")
# The device stands in every record beside these; what changes them changes the figures.
COMPARED: Final = ("host", "kernel", "machine", "libraries", "variables")
VARIABLES: Final = ("CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS", "HSA_ENABLE_SDMA")


@cache
def fingerprint() -> Mapping[str, Any]:
    """Say on what this process measures."""
    return {
        "host": socket.gethostname(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "longpole": _version("longpole"),
        "libraries": {name: found for name in LIBRARIES if (found := _version(name))},
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def fingerprint_changes(before: Mapping[str, Any]) -> list[str]:
    """Say in words what has changed since an earlier fingerprint, as far as it matters."""
    now = fingerprint()
    return [
        f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
        for name in COMPARED
        if name in before and before.get(name) != now.get(name)
    ]


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
