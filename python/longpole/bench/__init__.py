"""Measure programs and functions, and compare what was measured."""

from longpole.bench.baselines import save_baseline
from longpole.bench.compare import Comparison, Difference, Verdict, compare

__all__ = ["Comparison", "Difference", "Verdict", "compare", "save_baseline"]
