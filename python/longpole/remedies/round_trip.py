"""Results that are copied to the host, processed there, and copied back to the GPU."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.engine.critical_path.changes import Drop, Insert, RemoveWait, Scale
from longpole.remedies.model import Found, Remedy
from longpole.words.wording import count, duration, short_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import Activity, DeviceWait

# Longest time from the wait to the copy back, as a share of a window.
_FARTHEST: Final = 0.9

# A copy of the next step, or of a batch, is not a copy of the result.
_LOADERS: Final = ("enumerate(DataLoader)",)

# Minimum share of the round trip in which the GPU is idle.
_IDLE: Final = 0.6

# Time of the same computation on the GPU: two kernels and their launches.
_KERNELS_NS: Final = 20_000
_LAUNCHES_NS: Final = 20_000
_LEAST_REST: Final = 0.25


class Trip(NamedTuple):
    """A wait for a copy to the host, the copy back, and the time from one to the other."""

    wait: DeviceWait
    down: Activity
    up: Activity
    start_ns: int
    end_ns: int


def _find(facts: Facts) -> Iterator[Found]:
    of_place: dict[str, list[Trip]] = defaultdict(list)
    for trip in facts.once(trips):
        of_place[facts.name(trip.wait.operator or trip.wait.call.event)].append(trip)
    for place, rows in sorted(of_place.items()):
        is_usual = 2 * len({trip.wait.call.window for trip in rows}) >= facts.n_windows
        if is_usual and facts.is_worth(sum(trip.end_ns - trip.start_ns for trip in rows)):
            yield _found(facts, place, rows)


def trips(facts: Facts) -> list[Trip]:
    """List each wait for a copy to the host that is followed by a copy back, with an idle GPU.

    Of several waits before a copy back, the last one is for what the host works on.
    """
    downs = {row.event: row for row in facts.downloads}
    ups = [row for row in facts.uploads if row.call is not None]
    starts = sorted((facts.place(row.call or 0).start_ns, row) for row in ups)
    place = 0
    of_copies: dict[int, Trip] = {}
    borders = sorted(row.start_ns for row in facts.annotations("ProfilerStep#", *_LOADERS))
    for wait in sorted(facts.waits, key=lambda wait: wait.call.start_ns):
        down = downs.get(wait.work if wait.work is not None else -1)
        if down is None:
            continue
        while place < len(starts) and starts[place][0] < wait.call.end_ns:
            place += 1
        if place == len(starts):
            break
        up_ns, up = starts[place]
        known = of_copies.get(up.event)
        if known is not None and known.down.event == down.event:
            continue  # a second wait for the same copy
        first_after = bisect_right(borders, wait.call.end_ns)
        is_of_next = first_after < len(borders) and borders[first_after] <= up_ns
        if is_of_next or up_ns - wait.call.end_ns > _FARTHEST * facts.mean_ns:
            continue
        between = facts.launched_in([(wait.call.lane, wait.call.end_ns, up_ns)])
        busy_ns = sum(row.duration_ns for row in between)
        if busy_ns <= (1 - _IDLE) * (up_ns - wait.call.end_ns):
            start_ns = wait.call.start_ns
            if wait.operator is not None:
                start_ns = facts.place(wait.operator).start_ns
            of_copies[up.event] = Trip(wait, down, up, start_ns, _end_ns(facts, up))
    return [*of_copies.values()]


def _end_ns(facts: Facts, up: Activity) -> int:
    """Return when the copy back returns: it waits again if the memory is pageable."""
    place = facts.place(up.outermost if up.outermost is not None else up.call or 0)
    return place.end_ns


def _found(facts: Facts, place: str, rows: list[Trip]) -> Found:
    copies = sorted({event for trip in rows for event in (trip.down.event, trip.up.event)})
    ends = sorted({trip.up.event for trip in rows})
    time_ranges = [(trip.wait.call.lane, trip.start_ns, trip.end_ns) for trip in rows]
    waits = RemoveWait(time_ranges=time_ranges)
    host_ns = sum(trip.end_ns - trip.wait.call.end_ns for trip in rows) / len(rows)
    waited_ns = round(sum(trip.wait.call.duration_ns for trip in rows) / len(rows))
    rest = max(_LEAST_REST, min(_LAUNCHES_NS / max(host_ns, 1), 1.0))
    n_trips = max(round(facts.per_window(len(rows))), 1)
    cost = Insert(time_ns=_KERNELS_NS, events=ends)
    return Found(
        careful=[
            Scale(by=rest, time_ranges=time_ranges),
            waits,
            Drop(kind="copy", events=copies),
            cost,
        ],
        hopeful=[
            Scale(by=min(_LAUNCHES_NS / max(host_ns, 1), 1.0), time_ranges=time_ranges),
            waits,
            Drop(kind="copy", events=copies),
            cost,
        ],
        advice=(
            "Keep the result on the GPU and compute there, if possible, what the host does with it"
        ),
        evidence=(
            f"{count(n_trips, 'round trip')} {facts.each} through {short_name(place)}; "
            f"{'in each' if n_trips > 1 else 'in it'}, the host waits {duration(waited_ns)}, then "
            f"works {duration(round(host_ns))} while the GPU waits"
        ),
        name=place,
        events=[wait.call.event for wait in facts.shown_first(trip.wait for trip in rows)[:8]],
    )


REMEDY: Final = Remedy(
    id="round_trip",
    side="host",
    effort="code",
    needs="operators, runtime calls, memcpys and the calls that wait",
    seen_by="a copy to the host that is waited for, then a copy back, and an idle GPU meanwhile",
    change=(
        "both copies, the wait and the host work between; what computes the same on the GPU costs "
        "two kernels and their launches"
    ),
    not_when="the GPU works meanwhile, or what is copied next is of another step or a batch",
    find=_find,
)
