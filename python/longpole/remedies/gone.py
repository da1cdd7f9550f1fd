"""What changes remove from a program, and what they claim: events and times of threads."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop, Insert, RemoveWait, Replace, Scale
from longpole.remedies.spans import Gone, Spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from longpole.engine.critical_path.changes import Change, TimeRange
    from longpole.remedies.facts import Facts

# Kinds of events on devices, and kinds of time that are those of an activity itself, not of the
# delay before it.
_ON_DEVICE: Final = frozenset({"kernel", "copy", "fill"})
_OF_EVENTS: Final = frozenset({None, "kernel", "copy", "communication", "operator", "runtime"})


def removed_by(facts: Facts, changes: Iterable[Change]) -> Gone:
    """Return what changes remove, together with what is gone from the facts already."""
    events, time_ranges = set(facts.gone.events), [*facts.gone.spans]
    for change in changes:
        if isinstance(change, RemoveWait):
            events |= waits_removed(facts, [change])
        elif isinstance(change, Drop) and change.matching is None and change.kind in _OF_EVENTS:
            time_ranges += change.time_ranges or ()
            for event in change.events or ():
                place = facts.place(event)
                if place.kind in _ON_DEVICE or change.kind == "runtime":
                    events.add(event)
                else:
                    time_ranges.append(place.time_range)
    return Gone(frozenset(events | _without_work(facts, events)), Spans(time_ranges))


def waits_removed(facts: Facts, changes: Iterable[Change]) -> set[int]:
    """Return the calls whose wait some changes remove."""
    removed: set[int] = set()
    for change in changes:
        if isinstance(change, RemoveWait):
            removed |= _no_longer_waiting(facts, change)
    return removed


def _no_longer_waiting(facts: Facts, change: RemoveWait) -> set[int]:
    """Return the calls whose wait a change removes."""
    if change.kind != "sync_return" or change.matching is not None:
        return set()
    if change.events is not None:
        return {*change.events}
    calls = [wait.call for wait in facts.waits]
    if change.time_ranges is None:
        return {call.event for call in calls}
    spans = Spans(change.time_ranges)
    return {it.event for it in calls if spans.has(it.lane, it.start_ns, it.start_ns)}


def _without_work(facts: Facts, gone: set[int]) -> set[int]:
    """Return the calls that launched nothing but what is gone."""
    works = [*facts.kernels, *facts.copies]
    calls = {work.call for work in works if work.event in gone and work.call is not None}
    if not calls:
        return set()
    left = Counter(work.call for work in works if work.event not in gone)
    return {call for call in calls if not left[call]}


@dataclass(frozen=True)
class Claims:
    """What changes shorten: GPU activities, and times of threads."""

    works: frozenset[int] = frozenset()
    spans: Spans = field(default_factory=Spans)

    def __or__(self, other: Claims) -> Claims:
        return Claims(self.works | other.works, Spans([*self.spans, *other.spans]))

    def total_ns(self, facts: Facts) -> int:
        """Return the time of all that is claimed."""
        return self.spans.total_ns + sum(facts.place(it).duration_ns or 0 for it in self.works)

    def without(self, other: Claims) -> Claims:
        """Return what the others do not claim."""
        rest = (part for span in self.spans for part in other.spans.rest_of(span))
        return Claims(self.works - other.works, Spans(rest))


def claims_of(facts: Facts, changes: Iterable[Change]) -> Claims:
    """Return what changes shorten. Delays, waits and inserted costs are not claimed."""
    works: set[int] = set()
    time_ranges: list[TimeRange] = []
    for change in changes:
        if isinstance(change, RemoveWait | Insert) or change.kind not in _OF_EVENTS:
            continue
        time_ranges += change.time_ranges or ()
        for event in change.events or ():
            place = facts.place(event)
            if place.kind in _ON_DEVICE:
                works.add(event)
            else:
                time_ranges.append(place.time_range)
    return Claims(frozenset(works), Spans(time_ranges))


def unclaimed(facts: Facts, changes: Sequence[Change], claims: Claims) -> list[Change]:
    """Return changes, limited to what is not claimed."""
    if not claims.works and not claims.spans:
        return [*changes]
    return [left for change in changes for left in _unclaimed(facts, change, claims)]


def _unclaimed(facts: Facts, change: Change, claims: Claims) -> Iterator[Change]:
    is_claim = isinstance(change, Scale | Drop | Replace) and change.kind in _OF_EVENTS
    if not is_claim or (change.events is None and change.time_ranges is None):
        yield change
        return
    if change.time_ranges is not None:
        rest = [part for it in change.time_ranges for part in claims.spans.rest_of(it)]
        if rest:
            yield replace(change, time_ranges=rest)
        return
    events = [it for it in change.events or () if not _is_claimed(facts, it, claims)]
    if events:
        yield replace(change, events=events)


def _is_claimed(facts: Facts, event: int, claims: Claims) -> bool:
    place = facts.place(event)
    if place.kind in _ON_DEVICE:
        return event in claims.works
    return claims.spans.has(place.lane, place.start_ns, place.end_ns)
