"""Time Python functions, on the processor or on a device, in one process or in several."""

from longpole.bench.time.clocks import CpuClock, FakeClock, TorchClock
from longpole.bench.time.processes import Campaign, compare_points, time_in_processes
from longpole.bench.time.timing import Effort, Timing, measure, measure_in_turns

__all__ = [
    "Campaign",
    "CpuClock",
    "Effort",
    "FakeClock",
    "Timing",
    "TorchClock",
    "compare_points",
    "measure",
    "measure_in_turns",
    "time_in_processes",
]
