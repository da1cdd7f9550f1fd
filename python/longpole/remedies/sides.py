"""The names of what a verdict speaks of: sides, bounds of gains, and reasons to abstain."""

from __future__ import annotations

from typing import Literal

Status = Literal["ok", "balanced", "inconclusive", "no_device"]
Side = Literal["kernels", "host", "communication", "copies", "waits"]
Fact = Literal[
    "recorded",
    "busy_stream",
    "missing_activities",
    "late_launches",
    "unexplained_time",
    "recording_cost",
]
"""What determines a bound of a gain: nothing is missing, a stream is busy the rest of the time,
launched work is not recorded, launches are missing, time is unexplained, or the recording overhead
may differ from the estimate."""
BoundsParts = tuple[float, float, Fact, Fact]
"""The lower and the upper bound of a gain, and what determines each."""
GainParts = tuple[int, float, BoundsParts, list[Side]]
"""A gain as a time and as a share, its bounds, and the sides that the changes shorten."""
Cause = Literal[
    "unlinked",
    "remaining",
    "polling",
    "host_waits",
    "graph_gap",
    "unexplained",
    "unrecorded",
    "before_first_event",
    "after_last_event",
    "sync_return",
    "impossible_times",
    "damaged",
]
"""Reason why a trace does not show what limits it."""
