"""Time Python functions, on the processor or on a device."""

from longpole.bench.time.clocks import CpuClock, FakeClock, TorchClock
from longpole.bench.time.timing import Effort, Timing, measure, measure_in_turns

__all__ = [
    "CpuClock",
    "Effort",
    "FakeClock",
    "Timing",
    "TorchClock",
    "measure",
    "measure_in_turns",
]
