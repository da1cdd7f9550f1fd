"""Compare two sets of measurements: faster, slower, the same, or inconclusive."""

from longpole.bench.compare.comparison import Comparison, Difference, Verdict, compare

__all__ = ["Comparison", "Difference", "Verdict", "compare"]
