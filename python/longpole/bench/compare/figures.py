"""Summary of one side of a comparison."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Side"]


@dataclass(frozen=True, slots=True)
class Side:
    """Summary of the runs of one side."""

    n_runs: int
    """Number of runs with a time."""
    n_samples: int
    """Number of their samples."""
    median_ns: float
    """Median over the runs."""
    spread: float | None
    """Robust spread of the runs, as a fraction; None for a single run."""
    n_failed: int = 0
    n_unusable: int = 0
    """Number of invalid times."""
    n_dropped: int = 0
    """Number of samples dropped for the conditions in which they were taken."""
    n_disturbed: int = 0
    """Number of runs with too many dropped samples."""
