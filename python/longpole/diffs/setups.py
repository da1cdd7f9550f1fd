"""The devices, world size and software of both sides, as recorded in their files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from longpole.words.data import computed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.trace.trace import Trace

DEVICE: Final = "device"
WORLD_SIZE: Final = "world size"
_MACHINE: Final = (DEVICE, WORLD_SIZE)
_VERSIONS: Final = {
    "torch_version": "PyTorch",
    "cuda_runtime_version": "CUDA runtime",
    "cuda_driver_version": "CUDA driver",
    "cupti_version": "CUPTI",
    "hip_runtime_version": "HIP runtime",
    "hip_driver_version": "HIP driver",
    "roctracer_version": "roctracer",
    "schemaVersion": "profiler schema",
}
_CUDA: Final = ("CUDA runtime", "CUDA driver")


@dataclass(frozen=True, slots=True)
class Setup:
    """A property of the machine or software of both sides."""

    what: str
    """`device`, `world size`, `backend`, or the name of a program or library."""
    base: str | None
    """Value on the base side; None if not recorded."""
    new: str | None

    @computed
    def differs(self) -> bool:
        """Whether both sides record it with different values."""
        return None not in (self.base, self.new) and self.base != self.new


def setups_of(base: Sequence[Trace], new: Sequence[Trace]) -> tuple[Setup, ...]:
    """List what the traces of both sides record, the machine first."""
    sides = [_recorded(side) for side in (base, new)]
    names = dict.fromkeys(name for side in sides for name in side)
    order = [*_MACHINE, "backend", *_VERSIONS.values(), "NCCL"]
    return tuple(
        Setup(name, sides[0].get(name), sides[1].get(name))
        for name in sorted(names, key=order.index)
    )


def differing(setups: Iterable[Setup]) -> list[Setup]:
    """List known differences of the machine: device and world size."""
    return [setup for setup in setups if setup.differs and setup.what in _MACHINE]


def described(setups: Iterable[Setup]) -> str:
    """Describe how the machines differ; empty if they do not.

    Examples
    --------
    >>> described([Setup("device", "A100", "V100"), Setup("world size", "8", "2")])
    'across devices and world sizes (A100, 8 ranks, against V100, 2 ranks)'
    """
    found = differing(setups)
    if not found:
        return ""
    what = " and ".join(f"{setup.what}s" for setup in found)
    base = ", ".join(_value(setup.what, setup.base) for setup in found)
    new = ", ".join(_value(setup.what, setup.new) for setup in found)
    against = ", against" if len(found) > 1 else " against"
    return f"across {what} ({base}{against} {new})"


def _value(what: str, value: str | None) -> str:
    if what != WORLD_SIZE:
        return str(value)
    return f"{value} rank{'' if value == '1' else 's'}"


def _recorded(traces: Sequence[Trace]) -> dict[str, str]:
    """Return the properties of a side, with all values if its traces differ."""
    facts: dict[str, set[str]] = {}
    for trace in traces:
        for name, value in _facts(trace):
            if value not in (None, ""):
                facts.setdefault(name, set()).add(str(value))
    return {name: " + ".join(sorted(values)) for name, values in facts.items()}


def _facts(trace: Trace) -> Iterable[tuple[str, Any]]:
    yield DEVICE, _devices(trace)
    yield WORLD_SIZE, trace.world_size
    job = trace.metadata.get("distributedInfo")
    if isinstance(job, dict):
        yield "backend", job.get("backend")
        yield "NCCL", job.get("nccl_version")
    for field, name in _VERSIONS.items():
        yield name, _version(name, trace.metadata.get(field))


def _devices(trace: Trace) -> str:
    """Return the devices with GPU activities, else those described in the trace."""
    used = set(trace.lanes["device"].drop_nulls())
    names = trace.device_names
    found = {names.get(device) for device in used} - {None, ""} or {*names.values()}
    return " + ".join(sorted(name for name in found if name))


def _version(name: str, value: Any) -> Any:
    """Format a CUDA version: 12040 is 12.4."""
    if name in _CUDA and isinstance(value, int):
        return f"{value // 1000}.{value % 1000 // 10}"
    return value if isinstance(value, int | str) else None
