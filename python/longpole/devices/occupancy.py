"""The theoretical occupancy of a kernel on a multiprocessor, and what limits it.

The rules for CUDA are those of `cuda_occupancy.h` of CUDA 12.8, with the table "Technical
Specifications per Compute Capability" of the CUDA programming guide. The driver can reserve less
shared memory than the multiprocessor has, so the result is an upper bound.

Those for compute units of AMD's CDNA 2 to 4 are the functions `getTotalNumVGPRs`,
`getVGPRAllocGranule`, `getMaxWavesPerEU`, `getEUsPerCU`, `getMaxWorkGroupsPerCU` and
`getLocalMemorySize` of LLVM's `AMDGPUBaseInfo.cpp`: four units of at most 8 waves each, whose 512
vector registers of a lane include those for accumulation, and at most 16 workgroups of several
waves.

Limits: CDNA 1 has separate registers for accumulation, and the workgroups of RDNA run on one or two
compute units, which traces do not tell; nothing is said of them. The profiler of PyTorch records no
registers of AMD's devices.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_RESIDENT: Final = {
    (7, 0): (32, 64, 96),
    (7, 5): (16, 32, 64),
    (8, 0): (32, 64, 164),
    (8, 6): (16, 48, 100),
    (8, 7): (16, 48, 164),
    (8, 9): (24, 48, 100),
    **dict.fromkeys([(9, 0), (10, 0), (10, 3)], (32, 64, 228)),
    **dict.fromkeys([(12, 0), (12, 1)], (24, 48, 100)),
}
"""Most resident blocks and warps of a multiprocessor, and its shared memory in KiB, by compute
capability."""
_REGISTERS: Final = 65_536
_WARP: Final = 32
_REGISTERS_OF_WARP: Final = 256
"""Unit in which registers are allocated to a warp."""
_PARTITIONS: Final = 4
_AMPERE: Final = 8
_RESERVED_BYTES: Final = 1024
"""Shared memory that the system reserves for each block, since Ampere."""

_CDNA: Final = re.compile(r"\bMI(2[15]0X?|300[AX]|308X|325X|35[05]X)\b")
_LARGE_LDS: Final = re.compile(r"\bMI35")
"""Devices of CDNA 4, whose local memory is larger."""
_LDS_KIB: Final = (64, 160)
_LDS_UNIT: Final = 512
_WAVE: Final = 64
_REGISTERS_OF_WAVE: Final = 8 * _WAVE
_CDNA_WAVES: Final = 32
_CDNA_BLOCKS: Final = 16
_CDNA_REGISTERS: Final = _PARTITIONS * 512 * _WAVE


class Processor(NamedTuple):
    """Resources of a multiprocessor."""

    blocks: int
    warps: int
    registers: int
    shared_bytes: int
    shared_unit: int
    reserved_bytes: int
    warp: int = _WARP
    """Threads of a warp, or of a wave."""
    registers_of_warp: int = _REGISTERS_OF_WARP
    """Unit in which registers are allocated to a warp."""
    blocks_of_one_warp: int | None = None
    """Most resident blocks of one warp, if that differs from `blocks`."""


class Occupancy(NamedTuple):
    """How many blocks of a kernel are resident on a multiprocessor at once."""

    blocks: int
    share: float
    """Resident warps, as a share of the most that are possible."""
    limit: str | None
    """What limits it; None for a share of 1."""


def processor_of(properties: Mapping[str, object]) -> Processor | None:
    """Return the multiprocessor that a profiler describes; None if it is unknown.

    Examples
    --------
    >>> processor_of({"computeMajor": 9, "computeMinor": 0, "warpSize": 64}) is None
    True
    >>> processor_of({"name": "AMD Instinct MI300X"}).shared_bytes
    65536
    """
    name = str(properties.get("name"))
    if name.startswith("AMD") and _CDNA.search(name):
        return _compute_unit(is_large=bool(_LARGE_LDS.search(name)))
    major, minor = properties.get("computeMajor"), properties.get("computeMinor")
    if type(major) is not int or type(minor) is not int or not _is_cuda(properties):
        return None
    known = _RESIDENT.get((major, minor))
    if known is None:
        return None
    blocks, warps, shared_kib = known
    registers = properties.get("regsPerMultiprocessor", _REGISTERS)
    shared_bytes = properties.get("sharedMemPerMultiprocessor", shared_kib << 10)
    if type(registers) is not int or type(shared_bytes) is not int:
        return None
    unit, reserved = (128, _RESERVED_BYTES) if major >= _AMPERE else (256, 0)
    return Processor(blocks, warps, registers, shared_bytes, unit, reserved)


def _compute_unit(*, is_large: bool) -> Processor:
    return Processor(
        blocks=_CDNA_BLOCKS,
        warps=_CDNA_WAVES,
        registers=_CDNA_REGISTERS,
        shared_bytes=_LDS_KIB[is_large] << 10,
        shared_unit=_LDS_UNIT,
        reserved_bytes=0,
        warp=_WAVE,
        registers_of_warp=_REGISTERS_OF_WAVE,
        blocks_of_one_warp=_CDNA_WAVES,
    )


def _is_cuda(properties: Mapping[str, object]) -> bool:
    """Whether a device is one of CUDA: those of AMD have numbers of the same form."""
    if properties.get("warpSize", _WARP) != _WARP:
        return False
    return "regsPerMultiprocessor" in properties or str(properties.get("name")).startswith("NVIDIA")


def occupancy(
    processor: Processor, threads: int, registers: int, shared_bytes: int
) -> Occupancy | None:
    """Return the occupancy of blocks of some threads; None for a block that cannot run.

    Examples
    --------
    >>> a100 = Processor(32, 64, 65536, 167936, 128, 1024)
    >>> occupancy(a100, threads=256, registers=64, shared_bytes=0)
    Occupancy(blocks=4, share=0.5, limit='registers')
    >>> occupancy(a100, threads=32, registers=16, shared_bytes=0)
    Occupancy(blocks=32, share=0.5, limit='block size')
    >>> mi300 = processor_of({"name": "AMD Instinct MI300X"})
    >>> occupancy(mi300, threads=256, registers=128, shared_bytes=0)
    Occupancy(blocks=4, share=0.5, limit='registers')
    """
    if threads < 1 or registers < 0 or shared_bytes < 0:
        return None
    warps = -(-threads // processor.warp)
    most = processor.blocks if warps > 1 else processor.blocks_of_one_warp or processor.blocks
    allocated = _rounded(shared_bytes + processor.reserved_bytes, processor.shared_unit)
    of_warp = max(_rounded(registers * processor.warp, processor.registers_of_warp), 1)
    warps_of_registers = processor.registers // _PARTITIONS // of_warp * _PARTITIONS
    blocks = {
        "registers": warps_of_registers // warps,
        "shared memory": processor.shared_bytes // allocated if allocated else most,
        "block size": min(processor.warps // warps, most),
    }
    resident = min(blocks.values())
    if resident == 0:
        return None
    limits = [name for name, number in blocks.items() if number == resident]
    share = resident * warps / processor.warps
    return Occupancy(resident, share, None if share == 1 else " and ".join(limits))


def _rounded(number: int, unit: int) -> int:
    return -(-number // unit) * unit
