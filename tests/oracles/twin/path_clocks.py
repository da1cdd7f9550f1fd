"""Clocks of devices that disagree with the host's: what cannot be, and what would put it right."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from . import path_limits as limits
from .path_devices import GRAPH_LAUNCH, pending_wait_calls
from .path_events import Event, EventClass, Trace
from .path_pairs import is_asked_just_now
from .path_waits import DEVICE_SYNC_CALL, STREAM_SYNC_CALL, recorded_syncs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .path_devices import Devices


def clock_shifts(trace: Trace, devices: Devices) -> dict[object, int]:
    """Say by how much the stamps of each device must be moved, where several events say so.

    Work cannot start before its call does, and cannot end after a call that is known to have waited
    for it.
    """
    launched_ns: dict[object, list[int]] = defaultdict(list)
    idle_ns: dict[object, list[int]] = defaultdict(list)
    wait_calls = pending_wait_calls(trace, devices)
    n_too_quick: dict[object, int] = defaultdict(int)
    for event in trace.events:
        call = devices.launches.call_of(event)
        if call:
            after_ns = event.start_ns - call.start_ns
            n_too_quick[event.lane.owner] += after_ns < limits.QUICKEST_LAUNCH_NS
            usual_ns = call.duration_ns if GRAPH_LAUNCH.search(call.name) else 0
            launched_ns[event.lane.owner].append(after_ns - usual_ns)
            is_asked = is_asked_just_now(call, wait_calls[event], devices)
            if not is_asked and _is_idle_launch(event, call, devices):
                idle_ns[event.lane.owner].append(after_ns)
    late_ns: dict[object, list[int]] = defaultdict(list)
    n_too_late: dict[object, int] = defaultdict(int)
    for work, call in _known_waits(trace, devices):
        late_ns[work.lane.owner].append(work.end_ns - call.end_ns)
        n_too_late[work.lane.owner] += _ending_after(work, call.end_ns, devices)
    delays_ns = _delays_between_devices(trace, devices)
    probable_ns = {device: _probable_returns(device, trace, devices) for device in launched_ns}
    alone = {
        device: _shift(
            sorted(launched_ns[device]),
            n_too_quick[device],
            late_ns[device],
            n_too_late[device],
            released_ns=_releases(device, delays_ns),
            probable_ns=probable_ns[device],
        )
        for device in launched_ns
    }
    usual_ns = {
        device: agreed_ns + (shift.shift_ns if shift else 0)
        for device, shift in alone.items()
        if (agreed_ns := _agreed_ns(idle_ns[device])) is not None
    }
    shifts: dict[object, int] = {}
    for device, shift in alone.items():
        siblings = [it for it in devices.siblings(device) if it in usual_ns]
        is_told = device in usual_ns
        if shift and shift.by_launches:
            siblings = [it for it in siblings if not getattr(alone[it], "by_launches", False)]
            like_ns = min((usual_ns[it] for it in siblings), default=0) - min(
                idle_ns[device], default=0
            )
            is_like = siblings and is_told and _is_near(like_ns, shift.shift_ns)
            shifts[device] = like_ns if is_like else shift.shift_ns
        elif shift:
            shifts[device] = shift.shift_ns
        elif siblings and is_told:
            beside_ns = min(usual_ns[it] for it in siblings) - min(idle_ns[device])
            quickest_ns = min(launched_ns[device]) + beside_ns
            if beside_ns <= -limits.LATE_LAUNCHES_NS and quickest_ns >= limits.QUICKEST_LAUNCH_NS:
                shifts[device] = beside_ns
    evidence = _Evidence(launched_ns, late_ns)
    _agree_on_syncs(shifts, evidence, trace, devices)
    _agree_on_waits(shifts, evidence, delays_ns)
    return shifts


class _Evidence(NamedTuple):
    """By device: how soon work started after its call, and ended after what waited for it."""

    launched_ns: Mapping[object, Sequence[int]]
    late_ns: Mapping[object, Sequence[int]]

    def may_move(self, device: object, shift_ns: int) -> bool:
        """Say whether work would still start after its call and end before what waited."""
        is_after_call = all(
            ns + shift_ns >= limits.QUICKEST_LAUNCH_NS for ns in self.launched_ns.get(device, [])
        )
        return is_after_call and all(ns + shift_ns <= 0 for ns in self.late_ns.get(device, []))

    def room_ns(self, device: object, shifts: Mapping[object, int]) -> int | None:
        """Say how far stamps may move ahead until what waited returns as soon as is usual."""
        late_ns = self.late_ns.get(device)
        if not late_ns:
            return None
        return -max(late_ns) - shifts.get(device, 0) - limits.USUAL_RETURN_NS


def _agree_on_syncs(
    shifts: dict[object, int], evidence: _Evidence, trace: Trace, devices: Devices
) -> None:
    """Move stamps back where calls that wait for a device return a little too soon."""
    calls = [
        event
        for event in trace.events
        if event.event_class is EventClass.RUNTIME and DEVICE_SYNC_CALL.search(event.name)
    ]
    for device, shift_ns in list(shifts.items()):
        threads = devices.launching_threads(device)
        lanes = devices.lanes_of(device)
        returns_ns = []
        for call in calls:
            last = [devices.streams[lane].last_finished_before(call.start_ns) for lane in lanes]
            ends_ns = [work.end_ns for work in last if work]
            if call.lane in threads and ends_ns:
                returns_ns.append(call.end_ns - max(ends_ns) - shift_ns)
        quickest = _quickest(returns_ns, limits.UNEVEN_CLOCKS_NS)
        is_early = quickest and quickest[0] < limits.QUICKEST_RETURN_NS
        if is_early and quickest[-1] < limits.USUAL_RETURN_NS:
            moved_ns = shift_ns - (limits.USUAL_RETURN_NS - quickest[0])
            if evidence.may_move(device, moved_ns):
                shifts[device] = moved_ns


def _delays_between_devices(
    trace: Trace, devices: Devices
) -> dict[tuple[object, object], list[int]]:
    """Give how long after its end on one device work started that waits for it on another."""
    delays_ns: dict[tuple[object, object], list[int]] = defaultdict(list)
    order = list(dict.fromkeys(lane.owner for lane in devices.streams))
    for work in trace.events if devices.has_siblings else []:
        for other in devices.paired.get(work, []):
            if other.lane.owner != work.lane.owner:
                pair = (other.lane.owner, work.lane.owner)
                delays_ns[pair].append(work.start_ns - other.end_ns)
    pairs = sorted(delays_ns, key=lambda pair: tuple(map(order.index, pair)))
    return {pair: delays_ns[pair] for pair in pairs}


def _agree_on_waits(
    shifts: dict[object, int],
    evidence: _Evidence,
    delays_ns: Mapping[tuple[object, object], Sequence[int]],
) -> None:
    """Move stamps where what waited for another device seems to start a little too soon."""
    for (awaited, waiting), found_ns in delays_ns.items():
        apart_ns = shifts.get(waiting, 0) - shifts.get(awaited, 0)
        now_ns = [ns + apart_ns for ns in found_ns]
        was_moved = awaited in shifts or waiting in shifts
        if not was_moved and not _are_mostly_early(now_ns):
            continue
        reach_ns = limits.UNEVEN_CLOCKS_NS if was_moved else limits.CLOCK_TOLERANCE_NS
        quickest = _quickest(now_ns, reach_ns)
        if not quickest or quickest[-1] >= limits.QUICKEST_RELEASE_NS:
            continue
        by_ns = limits.QUICKEST_RELEASE_NS - quickest[-1]
        rooms_ns = (evidence.room_ns(it, shifts) for it in (waiting, awaited))
        ahead_ns = _ahead_ns(by_ns, *rooms_ns, int(waiting in shifts) - int(awaited in shifts))
        for device, moved_ns in ((waiting, ahead_ns), (awaited, ahead_ns - by_ns)):
            shift_ns = shifts.get(device, 0) + moved_ns
            if moved_ns and evidence.may_move(device, shift_ns):
                shifts[device] = shift_ns


def _releases(
    device: object, delays_ns: Mapping[tuple[object, object], Sequence[int]]
) -> list[int]:
    """Give how soon work of a device started after work of others that it waited for."""
    return [ns for pair, found_ns in delays_ns.items() if pair[1] == device for ns in found_ns]


def _probable_returns(device: object, trace: Trace, devices: Devices) -> list[int]:
    """Give how soon long calls returned after the end of work that they may have waited for."""
    recorded = recorded_syncs(trace, devices)
    threads = devices.launching_threads(device)
    returns_ns: list[int] = []
    for call in trace.events:
        if call.event_class is not EventClass.RUNTIME or call.duration_ns < limits.LONG_SYNC_NS:
            continue
        if call in recorded or call.lane not in threads:
            continue
        last = (
            devices.streams[lane].last_finished_before(call.start_ns)
            for lane in devices.lanes_of(device)
        )
        ends_ns = [work.end_ns for work in last if work]
        if DEVICE_SYNC_CALL.search(call.name):
            returns_ns += [call.end_ns - max(ends_ns)] if ends_ns else []
        elif STREAM_SYNC_CALL.search(call.name):
            returns_ns += [call.end_ns - end_ns for end_ns in ends_ns]
    return [ns for ns in returns_ns if abs(ns) <= limits.CLOCK_TOLERANCE_NS]


def _are_mostly_early(delays_ns: Sequence[int]) -> bool:
    """Say whether most starts near the end of what they waited for come too soon after it."""
    near_ns = [ns for ns in delays_ns if abs(ns) <= limits.CLOCK_TOLERANCE_NS]
    n_early = sum(ns < limits.QUICKEST_RELEASE_NS for ns in near_ns)
    return n_early >= limits.LEAST_CLOCK_EVIDENCE and n_early > len(near_ns) - n_early


def _ahead_ns(by_ns: int, waiting_ns: int | None, awaited_ns: int | None, was_moved: int) -> int:
    """Choose how far to move a waiting device ahead; the awaited one is moved back by the rest.

    ``was_moved`` is 1 where only the waiting one was moved before, and -1 where only the other was.
    """
    if waiting_ns is not None:
        return min(max(waiting_ns, 0), by_ns)
    if awaited_ns is not None:
        return by_ns - min(max(-awaited_ns, 0), by_ns)
    return by_ns * (1 + was_moved) // 2


def _quickest(delays_ns: Sequence[int], reach_ns: int) -> list[int]:
    """Give the three least delays that are no chance; none where there are fewer."""
    found = sorted(ns for ns in delays_ns if ns >= -reach_ns)
    is_enough = len(found) >= limits.LEAST_CLOCK_EVIDENCE
    return found[: limits.LEAST_CLOCK_EVIDENCE] if is_enough else []


class _Shift(NamedTuple):
    """By how much stamps must be moved, and whether only launches say so."""

    shift_ns: int
    by_launches: bool


def _is_idle_launch(work: Event, call: Event, devices: Devices) -> bool:
    """Say whether a launch found its stream empty."""
    before = [other for other in devices.streams[work.lane].works if other.rank < work.rank]
    is_empty = all(other.end_ns <= call.start_ns for other in before[-1:])
    return is_empty and not GRAPH_LAUNCH.search(call.name)


def _agreed_ns(launched_ns: Sequence[int]) -> int | None:
    """Give the quickest of three launches that take the same."""
    quickest = sorted(launched_ns)[: limits.LEAST_CLOCK_EVIDENCE]
    is_enough = len(quickest) == limits.LEAST_CLOCK_EVIDENCE
    are_alike = is_enough and quickest[-1] - quickest[0] <= limits.ALIKE_LAUNCHES_NS
    return quickest[0] if are_alike else None


def _shift(
    launched_ns: Sequence[int],
    n_too_quick: int,
    late_ns: Sequence[int],
    n_too_late: int,
    *,
    released_ns: Sequence[int],
    probable_ns: Sequence[int],
) -> _Shift | None:
    """Choose the shift; none where it would break the other fact."""
    returns_ns = [-ns for ns in late_ns] or probable_ns
    by_returns_ns = min(returns_ns) - limits.USUAL_RETURN_NS if returns_ns else None
    if n_too_quick >= limits.LEAST_CLOCK_EVIDENCE:
        shift_ns = limits.USUAL_LAUNCH_NS - launched_ns[0]
        if any(ns + shift_ns > limits.USUAL_LAUNCH_NS for ns in late_ns):
            return None
        if by_returns_ns is not None and _is_near(by_returns_ns, shift_ns):
            return _Shift(by_returns_ns, by_launches=False)
        return _Shift(shift_ns, by_launches=True)
    if by_returns_ns is None:
        return None
    if n_too_quick:
        is_behind = _is_near(by_returns_ns, limits.USUAL_LAUNCH_NS - launched_ns[0])
        return _Shift(by_returns_ns, by_launches=False) if is_behind else None
    n_early = sum(ns < 0 for ns in probable_ns)
    is_told = n_too_late or (not late_ns and n_early > len(probable_ns) - n_early)
    quickest = launched_ns[: limits.LEAST_CLOCK_EVIDENCE]
    are_quick = len(quickest) == limits.LEAST_CLOCK_EVIDENCE and all(
        ns + by_returns_ns <= limits.QUICK_LAUNCH_NS for ns in quickest
    )
    confirmed = are_quick or _releases_confirm(by_returns_ns, released_ns)
    agrees = launched_ns[0] + by_returns_ns >= 0
    is_ahead = n_too_late >= limits.LEAST_CLOCK_EVIDENCE or (is_told and confirmed)
    return _Shift(by_returns_ns, by_launches=False) if is_ahead and agrees else None


def _releases_confirm(shift_ns: int, released_ns: Sequence[int]) -> bool:
    """Say whether more starts behind another device come as soon as is usual after a shift."""
    least_ns, most_ns = limits.QUICKEST_RELEASE_NS, limits.USUAL_RELEASE_NS
    moved_ns = [ns + shift_ns for ns in released_ns]
    n_usual = sum(least_ns <= ns < most_ns for ns in moved_ns)
    n_before = sum(least_ns <= ns < most_ns for ns in released_ns)
    n_too_soon = sum(-limits.CLOCK_TOLERANCE_NS <= ns < least_ns for ns in moved_ns)
    return n_usual >= limits.LEAST_CLOCK_EVIDENCE and n_usual > max(n_before, n_too_soon)


def _is_near(shift_ns: int, by_launches_ns: int) -> bool:
    """Say whether a shift is as near to one by launches as these vary."""
    near_ns = limits.QUICK_LAUNCH_NS - limits.USUAL_LAUNCH_NS
    return -limits.USUAL_LAUNCH_NS <= shift_ns - by_launches_ns <= near_ns


def _ending_after(work: Event, at_ns: int, devices: Devices) -> int:
    """Count what ends after a time, from a GPU activity on back in the order of submission."""
    submitted = devices.streams[work.lane].submitted
    count = 0
    for other in reversed(submitted[: submitted.index(work) + 1]):
        if other.end_ns <= at_ns or count == limits.LEAST_CLOCK_EVIDENCE:
            break
        count += 1
    return count


def _known_waits(trace: Trace, devices: Devices) -> Iterator[tuple[Event, Event]]:
    """Give pairs of launched work and a call that is known to have waited for it."""
    recorded = recorded_syncs(trace, devices)
    n_devices = len({lane.owner for lane in devices.streams})
    for call in trace.events:
        if call.event_class is not EventClass.RUNTIME:
            continue
        if call in recorded:
            works = [work for work, _ in recorded[call]]
        elif DEVICE_SYNC_CALL.search(call.name) and n_devices == 1:
            works = _last_submitted_before(call, devices)
        else:
            works = [w for w in devices.launches.work_of.get(call, []) if _blocks(w, call)]
        yield from ((work, call) for work in works if devices.launches.call_of(work))


def _last_submitted_before(call: Event, devices: Devices) -> list[Event]:
    found = (stream.last_finished_before(call.start_ns) for stream in devices.streams.values())
    works = [work for work in found if work]
    return [max(works, key=lambda work: work.end_ns)] if works else []


def _blocks(copy: Event, call: Event) -> bool:
    """Say whether a call returns only when its copy is over."""
    is_staged = "Pageable ->" in copy.name
    stays = "DtoD" in copy.name or "Device -> Device" in copy.name
    waits = "-> Pageable" in copy.name or "Async" not in call.name
    return copy.category == "gpu_memcpy" and waits and not is_staged and not stays
