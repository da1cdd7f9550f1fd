"""What the profiler does for itself, which no remedy removes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from longpole.remedies.spans import Spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import OnThread, ThreadGap

InTime = TypeVar("InTime", "OnThread", "ThreadGap")

NAMES: Final = (
    "Activity Buffer Request",
    "Buffer Flush",
    "Instrumentation",
    "Resource",
    "UVM Activity Init",
)
"""What CUPTI calls its own work, which it records on a thread of its own."""

# What is mostly that exists only in the recording.
_MOSTLY: Final = 0.5
_MOST_WINDOWS: Final = 2


def without_profiler_work(facts: Facts, rows: Sequence[InTime]) -> list[InTime]:
    """Leave out events and gaps that consist mostly of what the profiler does for itself.

    That happens once or twice in a recording, so not in most of several windows.
    """
    if not rows or facts.n_windows > _MOST_WINDOWS:
        return list(rows)
    own = facts.once(_own)
    return [row for row in rows if _within_ns(own, row) <= _MOSTLY * row.duration_ns]


def _within_ns(own: Spans, row: OnThread | ThreadGap) -> int:
    """Return how long the profiler worked for itself during an event or a gap."""
    left = own.rest_of((0, row.start_ns, row.end_ns))
    return row.duration_ns - sum(end_ns - start_ns for _, start_ns, end_ns in left)


def _own(facts: Facts) -> Spans:
    """Return the times in which the profiler worked for itself, on any thread."""
    places = map(facts.place, facts.named(*NAMES))
    own = (place for place in places if place.kind == "overhead")
    return Spans((0, place.start_ns, place.end_ns) for place in own)
