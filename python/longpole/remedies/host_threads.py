"""A launching thread that stops at a different place in every step because it has no CPU.

The program's own work takes its time at the same place in every step. If the operating system runs
something else, the thread stops anywhere.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.remedies.model import Found, Remedy
from longpole.words.wording import count, duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from longpole.remedies.facts import Facts
    from longpole.remedies.recorded import OnThread

# Minimum length of a stop, and maximum usual time at that place as a fraction of it.
_LEAST_NS: Final = 1_000_000
_USUAL: Final = 0.2

# Stops are at the same place if another window has one within this share of its launches.
_NEAR: Final = 0.02
_LEAST_ELSEWHERE: Final = 0.7

# Minimum number of windows, of stops in each, and share of the time.
_LEAST_WINDOWS: Final = 2
_LEAST_STOPS: Final = 2
_LEAST_SHARE: Final = 0.1

# In a window with fewer launches, places cannot be distinguished.
_LEAST_LAUNCHES: Final = 50


class _Stop(NamedTuple):
    window: int
    place: float
    """Fraction of the launches of the window that come before it."""
    duration_ns: int
    event: int | None


def _find(facts: Facts) -> Iterator[Found]:
    if facts.n_windows < _LEAST_WINDOWS or len(facts.launch_lanes) != 1:
        return
    stops = _stops(facts)
    of_window: dict[int, list[_Stop]] = defaultdict(list)
    for stop in stops:
        of_window[stop.window].append(stop)
    if len(of_window) < facts.n_windows or min(map(len, of_window.values())) < _LEAST_STOPS:
        return
    places = {window: sorted(it.place for it in rows) for window, rows in of_window.items()}
    elsewhere = [stop for stop in stops if not _recurs(stop, places)]
    total_ns = sum(stop.duration_ns for stop in elsewhere)
    if len(elsewhere) < _LEAST_ELSEWHERE * len(stops):
        return
    if not facts.is_worth(total_ns, _LEAST_SHARE):
        return
    n_each = count(max(round(facts.per_window(len(elsewhere))), 1), "time", "times")
    longest = sorted(elsewhere, key=lambda stop: -stop.duration_ns)
    yield Found(
        careful=[],
        advice=(
            "Give the launching thread a processor of its own; `perf sched timehist` or "
            "`nsys profile --cpuctxsw=process-tree` shows what else runs"
        ),
        evidence=(
            f"it stands still {n_each} {facts.each}, for "
            f"{duration(round(facts.per_window(total_ns)))}, at another place each time"
        ),
        events=[stop.event for stop in facts.shown_first(longest)[:8] if stop.event is not None],
    )


def _stops(facts: Facts) -> list[_Stop]:
    """List long launches, gaps and operators of the launching thread without waits or loading."""
    [lane] = facts.launch_lanes
    launches = [call for call in facts.calls("launch") if call.lane == lane]
    starts: dict[int, list[int]] = defaultdict(list)
    for call in launches:
        starts[call.window].append(call.start_ns)
    if not starts or min(map(len, starts.values())) < _LEAST_LAUNCHES:
        return []
    for of_window in starts.values():
        of_window.sort()
    times = sorted(call.duration_ns for call in launches)
    if times[len(times) // 2] > _USUAL * _LEAST_NS:
        return []
    waits = {wait.call.event for wait in facts.waits}
    waiting = waits | {wait.operator for wait in facts.waits if wait.operator is not None}
    found: list[tuple[int, int, int, int | None]] = [
        (call.window, call.start_ns, call.duration_ns, call.event)
        for call in launches
        if call.duration_ns >= _LEAST_NS and call.event not in waits
    ]
    found += [
        (gap.window, gap.start_ns, gap.duration_ns, gap.after)
        for gap in facts.gaps(_LEAST_NS)
        if gap.lane == lane and not gap.is_loading and gap.before not in waiting
    ]
    found += [
        (row.window, row.start_ns, row.duration_ns, row.event)
        for row in _stopped_operators(facts, lane)
    ]
    return [
        _Stop(window, _place(starts[window], start_ns), duration_ns, event)
        for window, start_ns, duration_ns, event in found
        if window in starts
    ]


def _stopped_operators(facts: Facts, lane: int) -> list[OnThread]:
    """List operators that take long without a long call inside, where others of the name do not."""
    share = _LEAST_NS / max(facts.mean_ns, _LEAST_NS)
    rows = [row for row in facts.long_events(share) if row.lane == lane]
    rows.sort(key=lambda row: (row.start_ns, -row.end_ns))
    waits = sorted(wait.call.start_ns for wait in facts.waits if wait.call.lane == lane)
    usual: dict[str, int] = {}
    stopped = []
    for row, inner in zip_longest(rows, rows[1:]):
        holds_another = inner is not None and inner.start_ns < row.end_ns
        holds_a_wait = bisect_left(waits, row.start_ns) < bisect_left(waits, row.end_ns)
        if holds_another or holds_a_wait or facts.place(row.event).kind != "operator":
            continue
        name = facts.name(row.event)
        if name not in usual:
            times = sorted(it.duration_ns for it in facts.operators(name))
            usual[name] = times[len(times) // 2] if times else row.duration_ns
        if usual[name] <= _USUAL * _LEAST_NS:
            stopped.append(row)
    return stopped


def _place(starts: list[int], start_ns: int) -> float:
    return bisect_left(starts, start_ns) / len(starts)


def _recurs(stop: _Stop, places: dict[int, list[float]]) -> bool:
    """Whether at least one other window has a stop at this place."""
    for window, others in places.items():
        nearest = bisect_left(others, stop.place - _NEAR)
        is_near = nearest < len(others) and others[nearest] < stop.place + _NEAR
        if is_near and window != stop.window:
            return True
    return False


REMEDY: Final = Remedy(
    id="host_threads",
    side="host",
    effort="configuration",
    needs="operators and runtime calls of at least 2 steps; context switches prove it",
    seen_by=(
        "launches, gaps and otherwise short operators of 1 ms or more, at least two in every step, "
        "most of them where no other step has one"
    ),
    change="nothing: it is not recorded what the thread waited for",
    not_when="the stops are at the same places of the steps, or follow a wait for the GPU",
    is_computed=False,
    slows_all_operators=True,
    find=_find,
)
