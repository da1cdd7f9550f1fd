"""The environment of a measurement, which is needed to interpret it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import socket
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

# Versions are read from package metadata: none of these is imported.
LIBRARIES: Final = (
    "torch",
    "triton",
    "jax",
    "cupy",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "cuda-python",
    "nvidia-cublas-cu12",
    "nvidia-cudnn-cu12",
    "numpy",
)
# Every record also contains the device; these variables can change the measured times.
COMPARED: Final = (
    "host",
    "boot",
    "governor",
    "boost",
    "kernel",
    "machine",
    "libraries",
    "variables",
)
VARIABLES: Final = ("CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS", "HSA_ENABLE_SDMA")

RECORDED_VARIABLES: Final = frozenset(
    {
        *VARIABLES,
        "ASCEND_RT_VISIBLE_DEVICES",
        "CUDA_DEVICE_ORDER",
        "CUDA_MODULE_LOADING",
        "CUDA_VISIBLE_DEVICES",
        "GPU_MAX_HW_QUEUES",
        "HIP_VISIBLE_DEVICES",
        "LONGPOLE_FAKE_DEVICE",
        "MKL_NUM_THREADS",
        "OMP_NUM_THREADS",
        "PYTHONHASHSEED",
        "ROCR_VISIBLE_DEVICES",
        "ZE_AFFINITY_MASK",
    }
)
"""Variables whose values are recorded; of all others only a digest is."""


@cache
def fingerprint() -> Mapping[str, Any]:
    """Return the machine and software of this process."""
    return {
        "host": socket.gethostname(),
        "boot": _first_line("/proc/sys/kernel/random/boot_id"),
        "governor": _first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "boost": _boost(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "longpole": _version("longpole"),
        "libraries": {name: found for name in LIBRARIES if (found := _version(name))},
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def fingerprint_changes(before: Mapping[str, Any]) -> list[str]:
    """Describe relevant changes since an earlier fingerprint."""
    now = fingerprint()
    return [
        f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
        for name in COMPARED
        if name in before and before.get(name) != now.get(name)
    ]


def variables_on_record(
    variables: Mapping[str, str | None], recorded: Collection[str] = ()
) -> dict[str, Any]:
    """Return the environment variables of a job without possible secrets.

    Parameters
    ----------
    variables
        Names and values; None for a removed variable.
    recorded
        Names whose values may be recorded, in addition to `RECORDED_VARIABLES`.

    Examples
    --------
    >>> variables_on_record({"OMP_NUM_THREADS": "8", "TOKEN": "secret"})
    {'OMP_NUM_THREADS': '8', 'TOKEN': {'digest': '8d17f115bd08b509'}}
    """
    shown = RECORDED_VARIABLES.union(recorded)
    return {
        name: value if value is None or name in shown else {"digest": _digest(name, value)}
        for name, value in sorted(variables.items())
    }


def _digest(name: str, value: str) -> str:
    """Return a digest of a variable, which shows whether its value changed."""
    text = f"{name}={value}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:16]


def _boost() -> str | None:
    """Return whether the CPU may boost its clock; two drivers report it differently."""
    if (allowed := _first_line("/sys/devices/system/cpu/cpufreq/boost")) is not None:
        return "on" if allowed == "1" else "off"
    forbidden = _first_line("/sys/devices/system/cpu/intel_pstate/no_turbo")
    return None if forbidden is None else ("off" if forbidden == "1" else "on")


def _first_line(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8").split("\n", 1)[0]
    except OSError:
        return None


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
