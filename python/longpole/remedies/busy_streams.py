"""The time that streams stay busy after changes: no step becomes shorter than that.

This bounds gains whose other bounds are less certain, such as those that depend on what recording
cost on the host.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.engine.critical_path.changes import Drop, Replace, Scale

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.engine.critical_path.changes import Change
    from longpole.remedies.facts import Activity, Facts

__all__ = ["most_gain"]

# Kinds of time that changes of GPU activities name; other kinds are delays, or time of threads.
_OF_WORK: Final = frozenset({None, "kernel", "copy", "communication"})


def most_gain(facts: Facts, changes: Sequence[Change]) -> float:
    """Return the gain if only the busiest stream remains, with what the changes leave of it.

    Gains are of the mean window, but are read as those of the shown one. This refers to the
    shorter of both, so that what remains of either covers the stream. It is 1 if outliers lengthen
    the mean, which is then unlike any window.
    """
    if facts.parts["outliers"]:
        return 1.0
    shown_ns = facts.parts["lengths_ns"][0]
    busy_ns = facts.per_window(max(_busy_ns(facts, changes).values(), default=0.0))
    return 1.0 - busy_ns / max(min(shown_ns, facts.mean_ns), 1)


def _busy_ns(facts: Facts, changes: Sequence[Change]) -> dict[int, float]:
    """Return how long each stream is busy in all windows after changes."""
    works, streams = facts.once(_in_windows), {**facts.once(_unchanged_ns)}
    left: dict[int, float] = {}
    for change in changes:
        for event in _changed(works, change):
            before_ns = left.get(event, works[event].time_ns)
            left[event] = min(_left_ns(change, before_ns), before_ns)
    for event, time_ns in left.items():
        lane, _, before_ns = works[event]
        streams[lane] -= before_ns - time_ns
    return streams


class _Work(NamedTuple):
    """The time of a GPU activity within the window in which it ends."""

    lane: int
    kind: str
    time_ns: float


def _unchanged_ns(facts: Facts) -> dict[int, float]:
    """Return how long each stream is busy in all windows."""
    streams: dict[int, float] = defaultdict(float)
    for lane, _, time_ns in facts.once(_in_windows).values():
        streams[lane] += time_ns
    return streams


def _in_windows(facts: Facts) -> dict[int, _Work]:
    def within_ns(work: Activity) -> int:
        start_ns, _ = facts.windows[work.window]
        return work.start_ns + work.duration_ns - max(work.start_ns, start_ns)

    return {
        work.event: _Work(work.lane, work.kind, within_ns(work))
        for work in (*facts.kernels, *facts.copies)
    }


def _changed(works: dict[int, _Work], change: Change) -> Iterable[int]:
    """Return the activities whose time a change may shorten, regardless of its pattern."""
    is_of_work = isinstance(change, Drop | Scale | Replace) and change.kind in _OF_WORK
    if not is_of_work or change.time_ranges is not None:
        return ()
    events = works if change.events is None else works.keys() & set(change.events)
    return [event for event in events if change.kind in {None, works[event].kind}]


def _left_ns(change: Change, time_ns: float) -> float:
    """Return the least time that a change leaves of an activity."""
    match change:
        case Replace(matching=None):
            return change.time_ns
        case Scale(matching=None):
            return float(change.by) * time_ns
        case _:
            return 0.0
