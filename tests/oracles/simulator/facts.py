"""What a trace contains besides its events: its name, its ranks, its devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .program import Program

BASE_NS = 1_782_967_788_000_000_000  # a multiple of 7,889,238 s, as Kineto has it
N_PROCESSORS = 132


@dataclass(frozen=True, slots=True)
class Facts:
    """What a trace contains besides its events."""

    trace_name: str
    n_devices: int
    distributed_info: dict[str, Any]
    shapes: bool
    base_ns: int = BASE_NS
    trace_id: str = "5EED" * 8
    host_name: str = "simulated"


def facts_of(program: Program, *, shapes: bool) -> Facts:
    """Return what the trace of a program says about itself."""
    ranks = list(range(program.world_size))
    group = {
        "pg_name": "0",
        "pg_desc": "default_pg",
        "backend_config": "cuda:nccl",
        "pg_size": program.world_size,
        "ranks": ranks,
    }
    info = {
        "backend": "nccl",
        "rank": program.rank,
        "world_size": program.world_size,
        "pg_count": 1,
        "pg_config": [group],
        "nccl_version": "2.27.5",
    }
    name = f"{program.name}/device_{program.rank}.json"
    return Facts(name, program.n_devices, info, shapes)


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
