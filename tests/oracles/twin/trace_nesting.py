"""Who encloses whom on each thread, and whose time it is."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .trace_events import Event, Trace

NESTING_TOLERANCE_NS = 1_000
LAYERS = {"annotation": 0, "operator": 1, "python": 2, "runtime": 3, "driver": 3}


def outside_in(event: Event) -> tuple[Any, ...]:
    """Order events by start, the longer and outer kind first; then by any difference."""
    return (
        event.start_ns,
        -(event.duration_ns or 0),
        LAYERS.get(event.kind, 5),
        _identity(event),
        event.name or "",
        *map(_by_value, event.lane),
        event.kind == "driver",
        *map(_none_first, (event.external_id, event.correlation)),
        event.position,
    )


def _identity(event: Event) -> int:
    """Give the number the profiler gave the event; all but `Ev Idx` use 0 for none."""
    index = _number(event.args.get("Ev Idx"))
    if index is not None:
        return index
    record = _number(event.args.get("Record function id"))
    return record or event.external_id or event.correlation or 0


def _number(value: Any) -> int | None:
    try:
        return None if isinstance(value, bool | float) else int(value)
    except (TypeError, ValueError):
        return None


def _by_value(text: str) -> tuple[bool, int, str]:
    """Order numbers by value, before names."""
    number = _number(text)
    return (True, 0, text) if number is None else (False, number, "")


def _none_first(value: int | None) -> tuple[bool, int]:
    return (value is not None, value or 0)


def parents(trace: Trace) -> dict[int, int | None]:
    """Give each event on a thread the last to start of those that enclose it."""
    found: dict[int, int | None] = {}
    for events in _by_lane(event for event in trace.events if event.nests).values():
        running: list[Event] = []
        for event in sorted(events, key=outside_in):
            running = [other for other in running if other.end_ns >= event.start_ns]
            around = [other for other in reversed(running) if encloses(other, event)]
            found[event.row] = around[0].row if around else None
            running.append(event)
    return found


def encloses(outer: Event, inner: Event) -> bool:
    """Say whether an event lies in one that stands before it, give or take a rounding."""
    left_ns = outer.end_ns - inner.start_ns
    beyond_ns = inner.end_ns - outer.end_ns
    if beyond_ns > 0:
        return beyond_ns <= min(NESTING_TOLERANCE_NS, left_ns)
    return left_ns > 0 or inner.duration_ns == 0


def depths(parent_of: dict[int, int | None]) -> dict[int, int]:
    """Count the events around each."""

    def depth(row: int) -> int:
        count = 0
        while (row := parent_of[row]) is not None:
            count += 1
        return count

    return {row: depth(row) for row in parent_of}


def self_times(trace: Trace) -> dict[int, int]:
    """Give every instant of a thread to the event running then that started last."""
    own = {event.row: 0 for event in trace.events if event.nests}
    for events in _by_lane(event for event in trace.events if event.nests).values():
        ordered = sorted(filter(lambda event: event.duration_ns, events), key=outside_in)
        starts = [(event.start_ns, place, True) for place, event in enumerate(ordered)]
        ends = [(event.end_ns, place, False) for place, event in enumerate(ordered)]
        running: set[int] = set()
        since = 0
        for time_ns, place, starts_here in sorted(starts + ends):
            if running:
                own[ordered[max(running)].row] += time_ns - since
            (running.add if starts_here else running.discard)(place)
            since = time_ns
    return own


def _by_lane(events: Iterable[Event]) -> dict[tuple[str, str], list[Event]]:
    lanes = defaultdict(list)
    for event in events:
        lanes[event.lane].append(event)
    return lanes
