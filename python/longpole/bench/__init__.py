"""Measure programs and functions, and compare what was measured."""

from longpole.bench.baselines import save_baseline
from longpole.bench.clocks import CpuClock, FakeClock, TorchClock
from longpole.bench.compare import Comparison, Difference, Verdict, compare
from longpole.bench.extraction import Extraction, Extractor, MeasuredRow, extract, formats
from longpole.bench.legacy import ProfileResult, extract_profile_result
from longpole.bench.timing import Effort, Timing, measure, measure_in_turns

__all__ = [
    "Comparison",
    "CpuClock",
    "Difference",
    "Effort",
    "Extraction",
    "Extractor",
    "FakeClock",
    "MeasuredRow",
    "ProfileResult",
    "Timing",
    "TorchClock",
    "Verdict",
    "compare",
    "extract",
    "extract_profile_result",
    "formats",
    "measure",
    "measure_in_turns",
    "save_baseline",
]
