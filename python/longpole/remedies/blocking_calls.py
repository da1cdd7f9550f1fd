"""Calls that wait for the GPU, so that host and GPU take turns."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from longpole.engine.critical_path.changes import Drop, RemoveWait
from longpole.remedies.boolean_indexing import INDEXING
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import count, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.engine.critical_path.changes import TimeRange
    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import DeviceWait, OnThread

# Maximum number of call sites evaluated, longest wait first, besides all that are alike.
_MOST_PLACES: Final = 4
_WIDEST: Final = 60

_SHORTEST_GAP_NS: Final = 1_000


def _find(facts: Facts) -> Iterator[Found]:
    of_place: dict[str, list[DeviceWait]] = defaultdict(list)
    for wait in facts.waits:
        if facts.name(wait.operator) in INDEXING:  # covered by `boolean_indexing`
            continue
        of_place[_place(facts, wait)].append(wait)
    of_place = {place: waits for place, waits in of_place.items() if _n_waiting(facts, waits)}
    places = sorted(of_place.items(), key=lambda place: -_waited_ns(place[1]))
    # A call that only waits may be needless. What an operator waits for is read: another change.
    for is_read in (False, True):
        alike = [it for it in places if (it[1][0].operator is not None) is is_read]
        if len(alike) > 1:
            everything = [wait for _, waits in alike for wait in waits]
            place = f"{alike[0][0]} and {count(len(alike) - 1, 'more place')}"
            yield _found(facts, place, everything, is_all=len(alike) == len(places))
    for place, waits in places[:_MOST_PLACES]:
        yield _found(facts, place, waits, is_all=len(places) == 1)


def _synchronizing(facts: Facts) -> frozenset[int]:
    """Return the calls that do nothing but wait for a stream, an event or a device."""
    roles = ("device_synchronize", "stream_synchronize", "event_synchronize")
    return frozenset(call.event for call in facts.calls(*roles))


def _with_gap(facts: Facts, call: OnThread) -> Iterator[TimeRange]:
    """Return the time of a call and of the Python that leads to it."""
    yield call.time_range
    if call.event in (gaps := facts.once(_gaps_before)):
        yield gaps[call.event]


def _gaps_before(facts: Facts) -> dict[int, TimeRange]:
    gaps = facts.gaps(_SHORTEST_GAP_NS)
    return {gap.after: gap.time_range for gap in gaps if gap.after is not None}


def _waited_ns(waits: list[DeviceWait]) -> int:
    return sum(wait.call.duration_ns for wait in waits)


def _n_waiting(facts: Facts, waits: list[DeviceWait]) -> int:
    """Return the number of calls that begin before the work that they wait for has ended."""
    return sum(
        wait.work is None or facts.place(wait.work).end_ns > wait.call.start_ns for wait in waits
    )


def _place(facts: Facts, wait: DeviceWait) -> str:
    """Return the name of a call site: the operator, and the function that calls it."""
    what = facts.name(wait.operator if wait.operator is not None else wait.call.event)
    frame = facts.own_frame(wait.call.event)
    return f"{what} in {short_name(frame, _WIDEST)}" if frame else what


def _found(facts: Facts, place: str, waits: list[DeviceWait], *, is_all: bool) -> Found:
    change = RemoveWait(events=None if is_all else [wait.call.event for wait in waits])
    n_waits = max(round(facts.per_window(_n_waiting(facts, waits))), 1)
    synchronizing = facts.once(_synchronizing)
    # A call that only waits is removed with its wait; one inside an operator also copies.
    gone = [
        wait.call for wait in waits if wait.operator is None and wait.call.event in synchronizing
    ]
    time_ranges = [time_range for call in gone for time_range in _with_gap(facts, call)]
    return Found(
        careful=[change],
        hopeful=[change, *([Drop(time_ranges=time_ranges)] if time_ranges else [])],
        advice=f"Do not wait for the {facts.processor} in {place}",
        evidence=(f"{count(n_waits, 'call')} {facts.each} {'waits' if n_waits == 1 else 'wait'}"),
        name=place,
        events=facts.longest(wait.call for wait in waits),
    )


REMEDY: Final = Remedy(
    id="blocking_calls",
    side="host",
    effort="code",
    needs="runtime calls; Python stacks name the place",
    seen_by="calls that return after the work they wait for",
    change="the waits of each place, and of all places that only wait or that read; at most also "
    "the calls that only wait and the Python before each; whether the data is needed is not "
    "considered",
    not_when="no call waits",
    removes_code=True,
    is_upper_bound=True,
    find=_find,
)
