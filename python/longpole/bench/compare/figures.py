"""What one side of a comparison says."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Side"]


@dataclass(frozen=True, slots=True)
class Side:
    """What the runs of one side say."""

    n_runs: int
    """Runs that gave a time."""
    n_samples: int
    """The samples in them."""
    median_ns: float
    """The median of the runs."""
    spread: float | None
    """How far runs lie from one another, robust, as a share; None for a single run."""
    n_failed: int = 0
    n_unusable: int = 0
    """Times that cannot be one."""
    n_dropped: int = 0
    """Samples that were dropped for the conditions they were taken in."""
    n_disturbed: int = 0
    """Runs with too many of these."""
