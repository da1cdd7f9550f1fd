"""Measure programs and functions, and compare what was measured."""

from longpole.bench.baselines import save_baseline
from longpole.bench.clocks import CpuClock, FakeClock, TorchClock
from longpole.bench.compare import Comparison, Difference, Verdict, compare
from longpole.bench.timing import Effort, Timing, measure, measure_in_turns

__all__ = [
    "Comparison",
    "CpuClock",
    "Difference",
    "Effort",
    "FakeClock",
    "Timing",
    "TorchClock",
    "Verdict",
    "compare",
    "measure",
    "measure_in_turns",
    "save_baseline",
]
