"""Emptying the instruction cache, so that a timed call does not find its own code in it.

On the processor, and on NVIDIA devices, which have no instruction for it, code that does nothing
and is larger than the caches runs through them. AMD devices invalidate theirs with one
instruction. What a device does has not been tried on a GPU yet.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from longpole.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from longpole.bench.time.clocks import Clock

__all__ = ["instruction_flush"]

# More than the second level of today's cores, which holds instructions as well as data.
_PROCESSOR_BYTES: Final = 4 << 20

# An instruction that does nothing, and the return, by the name of the architecture.
_INSTRUCTIONS: Final = {
    "x86_64": (b"\x90", b"\xc3"),
    "aarch64": (b"\x1f\x20\x03\xd5", b"\xc0\x03\x5f\xd6"),
}

# NVIDIA's caches hold 128 KiB of instructions, of 16 bytes each.
_DEVICE_INSTRUCTIONS: Final = 16384
_BLOCKS: Final = 1024

_HIP: Final = """
extern "C" __global__ void flush_instructions(int* out) {
    asm volatile("s_icache_inv\\ns_nop 0\\ns_nop 0\\ns_nop 0\\ns_nop 0\\n" ::: "memory");
}
"""
_CUDA: Final = """
extern "C" __global__ void flush_instructions(int* out) {{
    int value = threadIdx.x;
    asm volatile("{body}" : "+r"(value));
    if (value == -1) *out = value;
}}
"""

# A chain that the assembler cannot shorten: of as many `xor` with a constant it keeps none. In one
# statement, for the time to compile grows with the square of their number. NVRTC 13 makes 259 KiB
# of machine code of it for compute capability 9.0.
_STEP: Final = "mad.lo.s32 %0, %0, %0, 12345;"


def instruction_flush(clock: Clock) -> Callable[[], object] | None:
    """Give a function that empties the instruction cache of what a clock times.

    Parameters
    ----------
    clock
        `CpuClock` or `TorchClock`; there is nothing to empty for others, and None is given.

    Raises
    ------
    DeviceError
        It cannot be done here.
    """
    if clock.name == "cpu":
        return _processor_flush()
    return _device_flush(clock.name) if clock.name in {"cuda", "hip"} else None


def _processor_flush() -> Callable[[], object]:
    machine = platform.machine()
    code = _INSTRUCTIONS.get(machine)
    if code is None:
        message = f"the instruction cache of {machine} cannot be emptied\nhint: pass flush=None"
        raise DeviceError(message)
    return _Code(*code)


class _Code:
    """Machine code that does nothing, in memory that may run, for as long as this lives."""

    def __init__(self, nothing: bytes, end: bytes) -> None:
        access = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
        try:
            self._memory = mmap.mmap(-1, _PROCESSOR_BYTES, prot=access)
        except OSError as error:
            message = f"the system refuses executable memory: {error}\nhint: pass flush=None"
            raise DeviceError(message) from error
        self._memory.write(nothing * ((_PROCESSOR_BYTES - len(end)) // len(nothing)) + end)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._function = ctypes.CFUNCTYPE(None)(start)

    def __call__(self) -> None:
        """Run all of it."""
        self._function()


def _device_flush(name: str) -> Callable[[], object]:
    """Compile a kernel with torch, and give a function that queues it."""
    torch = import_module("torch")
    compiler = getattr(torch.cuda, "_compile_kernel", None)
    if compiler is None:
        message = "flushing the instruction cache of a device needs torch 2.9\nhint: flush=None"
        raise DeviceError(message)
    source = _HIP if name == "hip" else _CUDA.format(body=_STEP * _DEVICE_INSTRUCTIONS)
    kernel: Any = compiler(source, "flush_instructions")
    out = torch.zeros(1, dtype=torch.int32, device="cuda")

    def flush() -> None:
        kernel(grid=(_BLOCKS, 1, 1), block=(64, 1, 1), args=[out])

    return flush
