"""Time functions, on the processor or on a device, and commands, in one or more processes."""

from longpole.bench.time.candidates import Candidates
from longpole.bench.time.clocks import CpuClock, FakeClock
from longpole.bench.time.commands import CommandPlan
from longpole.bench.time.measure import measure, measure_in_turns
from longpole.bench.time.processes import Campaign
from longpole.bench.time.timing import Effort, Timing
from longpole.bench.time.torch_clock import CuptiClock, TorchClock

__all__ = [
    "Campaign",
    "Candidates",
    "CommandPlan",
    "CpuClock",
    "CuptiClock",
    "Effort",
    "FakeClock",
    "Timing",
    "TorchClock",
    "measure",
    "measure_in_turns",
]
