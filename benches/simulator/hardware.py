"""The devices that traces say they were recorded on."""

from __future__ import annotations

from typing import Any

__all__ = ["N_PROCESSORS", "device_properties"]

N_PROCESSORS = 132


def device_properties(n_devices: int) -> list[dict[str, Any]]:
    """Return what the head of a trace says of each device."""
    return [
        {
            "id": device,
            "name": "NVIDIA H100 80GB HBM3",
            "totalGlobalMem": 85_018_279_936,
            "computeMajor": 9,
            "computeMinor": 0,
            "maxThreadsPerBlock": 1_024,
            "maxThreadsPerMultiprocessor": 2_048,
            "regsPerBlock": 65_536,
            "regsPerMultiprocessor": 65_536,
            "warpSize": 32,
            "sharedMemPerBlock": 49_152,
            "sharedMemPerMultiprocessor": 233_472,
            "numSms": N_PROCESSORS,
            "sharedMemPerBlockOptin": 232_448,
        }
        for device in range(n_devices)
    ]
