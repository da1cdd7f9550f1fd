"""How much of the evidence for a remedy is left on the new side.

A remedy may stop gaining anything for many reasons: a call no longer waits if the kernels before it
became faster, and communication no longer matters if a rank is no longer late. It counts as applied
only if what it changes is gone: the calls, launches or host time that it removes, or the part of
the work on the critical path that it hides. A remedy of work that remains declares what shows it.

Limits: a few remedies leave no trace that distinguishes them, such as a launch queue that is no
longer full. They never count as applied.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from longpole.diffs.overlap import overlaps
from longpole.diffs.sides import one_of
from longpole.engine.critical_path.changes import RemoveWait
from longpole.remedies.catalogue import remedy_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from longpole.answer.findings import Remedy
    from longpole.diffs.changes import Group, Work
    from longpole.diffs.sides import Side
    from longpole.engine.critical_path.changes import Change

_DEVICE: Final = frozenset({"kernel", "copy", "communication"})
# If less than this fraction of the evidence is left, the remedy was applied.
_LEFT: Final = 0.5


def is_gone(remedy: Remedy, pair: tuple[Side, Side], work: Work) -> bool:
    """Whether the new side lacks most of what a remedy of the base changes."""
    declared = remedy_of(remedy.remedy)
    if declared.replaces_name is not None and _replaced(pair, declared.replaces_name):
        return True
    if declared.shortens:
        before_ns, after_ns = (_time_ns(side, declared.shortens) for side in pair)
        if declared.leaves is not None:
            return after_ns <= declared.leaves * before_ns
        addressed_ns = min(float(remedy.gain.duration_ns), before_ns)
        return before_ns - after_ns >= (1 - _LEFT) * addressed_ns
    if declared.hides:
        return _is_hidden(pair, declared.hides)
    return _events_left(remedy, pair, work) <= _LEFT


def _is_hidden(pair: tuple[Side, Side], kind: str) -> bool:
    """Whether kernels now run concurrently with work of a kind that is about as long as before."""
    (before_ns, apart_ns), (after_ns, now_apart_ns) = (
        (float(times.mean()), float((times - hidden).mean()))
        for times, hidden in (overlaps(side, kind) for side in pair)
    )
    return after_ns >= _LEFT * before_ns and now_apart_ns <= _LEFT * apart_ns


def _replaced(pair: tuple[Side, Side], names: tuple[str, str]) -> bool:
    """Whether each side has functions of its name."""
    return all(_has_name(side, name) for side, name in zip(pair, names, strict=True))


def _has_name(side: Side, part: str) -> bool:
    import polars as pl

    names = side.events.select("name").unique()["name"].cast(pl.String)
    return bool(names.str.contains(part, literal=True).any())


def _time_ns(side: Side, kinds: tuple[str, ...]) -> float:
    """Return the time of work of some kinds in a mean step."""
    return float(side.work.filter(one_of("kind", kinds))["work_ns"].sum()) / side.n_steps


def _events_left(remedy: Remedy, pair: tuple[Side, Side], work: Work) -> float:
    """Return the part of the events that a remedy changes which is left on the new side.

    GPU activities show it if the remedy changes any, then calls that wait, then other host work.
    """
    waits = [change for change in remedy.changes if isinstance(change, RemoveWait)]
    others = [change for change in remedy.changes if not isinstance(change, RemoveWait)]
    changed = _changed_events(others, pair[0])
    for is_device in (True, False):
        groups = [group for group in work.groups if (group.kind in _DEVICE) == is_device]
        left = _groups_left(groups, changed, pair[0])
        if left is not None:
            return left
        if waits:
            return _waits_left(waits, pair)
    return 1.0


def _groups_left(groups: Iterable[Group], changed: NDArray[np.bool_], base: Side) -> float | None:
    """Return the part of the changed events that is left, each weighted with its duration.

    Of a group of which only a part is changed, that part is assumed to have gone first. None if no
    group has a changed event.
    """
    part_of_steps = _n_covered(base) / base.n_steps
    whole = left = 0.0
    for group in groups:
        events = group.events[0]
        is_changed = changed[events]
        if not is_changed.any():
            continue
        weight = float(base.durations_ns[events[is_changed]].clip(min=1).sum())
        before, after = (float(counts.mean()) for counts in group.counts)
        lost = 1.0 if group.base_names != group.new_names else max(1 - after / before, 0.0)
        share = min(float(is_changed.mean()) / part_of_steps, 1.0)
        whole += weight
        left += weight * max(1 - lost / share, 0.0)
    return left / whole if whole else None


def _n_covered(side: Side) -> int:
    """Return the number of steps that the changes of remedies cover."""
    numbers = side.verdict.remedy_steps
    if not side.has_steps or not numbers:
        return side.n_steps
    return max(int(side.steps["step"].is_in(list(numbers)).sum()), 1)


def _waits_left(waits: Sequence[RemoveWait], pair: tuple[Side, Side]) -> float:
    """Return the part of the calls that wait, of those that a remedy removes, which is left."""
    base, new = pair
    if any(change.kind != "sync_return" for change in waits):
        n_before, n_after = (_n_stream_waits(side) for side in pair)
        return n_after / n_before if n_before else 1.0
    before, after = (_blocking(side) for side in pair)
    given = [event for change in waits for event in change.events or ()]
    names = Counter(_names(base, given)) if given else before
    parts = base.n_steps / _n_covered(base)
    left = 0.0
    for name, n_removed in names.items():
        n_each = min(n_removed * parts, before[name]) / base.n_steps
        n_lost = max(before[name] / base.n_steps - after[name] / new.n_steps, 0.0)
        left += n_removed * max(1 - n_lost / n_each, 0.0) if n_each else n_removed
    return left / names.total() if names else 1.0


def _blocking(side: Side) -> Counter[str]:
    """Count the calls that wait in the steps, by name."""
    events = side.trace.blocking_calls["event"].to_numpy()
    starts_ns = side.events["start_ns"].to_numpy()[events]
    return Counter(_names(side, events[side.rows_at(starts_ns) >= 0].tolist()))


def _names(side: Side, events: Sequence[int]) -> list[str]:
    return [str(name) for name in side.events["name"].gather(list(events)).cast(str)]


def _n_stream_waits(side: Side) -> float:
    """Return the number of calls in a mean step that let a stream wait."""
    import polars as pl

    roles = side.trace.api_roles
    calls = roles.filter(pl.col("role").cast(pl.String) == "stream_wait")["event"].to_numpy()
    rows = side.rows_at(side.events["start_ns"].to_numpy()[calls])
    return float((rows >= 0).sum()) / side.n_steps


def _changed_events(changes: Iterable[Change], side: Side) -> NDArray[np.bool_]:
    """Return which events some changes address."""
    import numpy as np

    found = np.zeros(side.events.height, bool)
    for change in changes:
        if change.events is not None:
            found[list(change.events)] = True
        elif change.time_ranges is not None:
            found |= _inside(change.time_ranges, side)
        elif change.kind is not None:
            found |= _of_kind(change, side)
    return found


def _inside(time_ranges: Iterable[tuple[int, int, int]], side: Side) -> NDArray[np.bool_]:
    """Return which events lie inside one of some time ranges of threads."""
    import numpy as np

    lanes = side.events["lane"].fill_null(-1).to_numpy()
    starts_ns = side.events["start_ns"].fill_null(-1).to_numpy()
    ends_ns = starts_ns + side.durations_ns
    found = np.zeros(len(lanes), bool)
    by_lane: dict[int, list[tuple[int, int]]] = {}
    for lane, start_ns, end_ns in time_ranges:
        by_lane.setdefault(lane, []).append((start_ns, end_ns))
    for lane, ranges in by_lane.items():
        begins, ends = np.array(sorted(ranges)).T
        rows = np.flatnonzero(lanes == lane)
        place = np.searchsorted(begins, starts_ns[rows], side="right") - 1
        is_inside = (place >= 0) & (ends_ns[rows] <= ends[np.maximum(place, 0)])
        found[rows[is_inside]] = True
    return found


def _of_kind(change: Change, side: Side) -> NDArray[np.bool_]:
    """Return which events are of the kind of a change, with a matching name."""
    import numpy as np
    import polars as pl

    work = side.work.filter(one_of("kind", (str(change.kind),))).drop_nulls("event")
    events = work["event"].to_numpy()
    found = np.zeros(side.events.height, bool)
    found[events] = True
    if change.matching is not None:
        names = side.events["name"].cast(pl.String).fill_null("")
        found &= names.str.contains(change.matching).to_numpy()
    return found
