"""The list of remedies, and the gain of each in the windows of a verdict."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.engine.critical_path.changes import Drop, Insert, RemoveWait, Replace, Scale, parts_of
from longpole.remedies.busy_streams import most_gain
from longpole.remedies.model import EFFORTS, Found, Remedy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longpole.engine.critical_path.changes import Change, WorkKind
    from longpole.remedies.facts import Facts
    from longpole.remedies.parts import BoundsParts, Fact, Side

    _Gain = tuple[int, float, float, float, Fact, Fact]

__all__ = [
    "CATALOGUE",
    "Gained",
    "RemedyId",
    "Together",
    "gain_of",
    "gained",
    "remedies",
    "together",
]

CATALOGUE: Final = (
    "warm_up",
    "loader_workers",
    "loader_prefetch",
    "pinned_copies",
    "redundant_copies",
    "compile_overhead",
    "allocation",
    "optimizer_loop",
    "zero_grad_fills",
    "interpreter_lock",
    "round_trip",
    "small_copies",
    "boolean_indexing",
    "tensor_loop",
    "graph_breaks",
    "eager_dispatch",
    "recurring_call",
    "python_between_operators",
    "cuda_graph",
    "overlap_copies",
    "late_rank",
    "small_messages",
    "communication_overlap",
    "blocking_calls",
    "stream_waits",
    "queue_full",
    "tensor_cores",
    "layout_copies",
    "repeated_weight_casts",
    "fused_attention",
    "channels_last",
    "fused_pointwise",
    "folded_batch_norm",
    "recomputation",
    "contended_atomics",
    "unaligned_products",
    "slow_kernels",
    "small_batch",
    "host_threads",
)
"""The files of this folder with a remedy, in the order in which equal gains are listed."""

ENTRY_POINTS: Final = "longpole.remedies"
"""The entry point group with which other packages add remedies."""

# Maximum number of places evaluated per remedy, and maximum number of remedies evaluated one after
# another.
_MOST_OF_ONE: Final = 8
_MOST_IN_TURN: Final = 6

# Minimum fraction of the recorded host time that the host needs without the profiler. It applies to
# a host that is not ahead of the device; the recording cost on the host is known to about a
# quarter.
_LEAST_PACE: Final = 0.75

# A remedy that gains this much more than removing all time of its side also shortens something
# else.
_LEAST_MORE: Final = 0.005

# Gains count as similar if one is at least this fraction of the other.
_ALIKE: Final = 0.8


class RemedyId(str):
    """The id of a remedy; the schema of an answer lists all of them."""

    __slots__ = ()

    @classmethod
    def __values__(cls) -> tuple[str, ...]:
        return tuple(remedy.id for remedy in remedies())


@dataclass(frozen=True, slots=True)
class Gained:
    """A remedy that applies to a place in the program, with its gain there."""

    remedy: Remedy
    found: Found
    gain_ns: int
    """Gain in the mean window that is certain; negative for a loss."""
    gain: float
    low: float
    """Lower bound of the gain, regardless of missing records."""
    high: float
    """Upper bound: with the changes that may be possible."""
    low_by: Fact
    high_by: Fact
    then: float
    """Gain after the remedies listed before it."""
    also: tuple[str, ...] = ()
    """Other sides that it shortens too, if its own side limits the program and gains less."""


class Together(NamedTuple):
    """The gain of several remedies together."""

    gain: float
    low: float
    high: float
    then: dict[Side, float]
    """How much shorter the rest would be without each side; empty if unknown."""


@cache
def remedies() -> tuple[Remedy, ...]:
    """Return all remedies: those of the catalogue, then those of other packages."""
    own = [import_module(f"longpole.remedies.{name}").REMEDY for name in CATALOGUE]
    return (*own, *_added())


def _added() -> Iterator[Remedy]:
    from importlib.metadata import entry_points

    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        try:
            remedy = point.load()
        except Exception as error:  # noqa: BLE001 - other packages can raise anything
            yield _failing(point.name, error)
        else:
            yield remedy


def _failing(name: str, error: Exception) -> Remedy:
    """Return a remedy that raises when it is used, so that it is listed among the failures."""

    def find(_facts: Facts) -> list[Found]:
        raise error

    return Remedy(
        id=name, side="host", effort="code", needs="", seen_by="", change="", not_when="", find=find
    )


def gained(facts: Facts) -> tuple[list[Gained], list[str]]:
    """Evaluate every remedy, and compute the gain of each place to which it applies.

    Returns
    -------
    tuple of list
        The places by certain gain, and a sentence for each remedy that failed.
    """
    rows, failures = facts.once(_alone)
    return _in_turn(facts, rows), failures


def _alone(facts: Facts) -> tuple[list[Gained], list[str]]:
    """Compute the gain of each place by itself, for every time of a step that was measured."""
    ends = [(end.once(_alone)[0], dict(end.parts["bounds_of_cost"])) for end in facts.ends()]
    if facts.parts["recording_cost"] is not None:
        bounds = _side_bounds(facts)
        for _, at_end in ends:
            bounds = [(side, _extended(each, at_end[side])) for side, each in bounds]
        facts.parts["bounds_of_cost"] = [
            (side, _side_within_busy(facts, side, each)) for side, each in bounds
        ]
    places, failures = [], []
    for remedy in remedies():
        try:
            places += [(remedy.at(found), found) for found in [*remedy.find(facts)][:_MOST_OF_ONE]]
        except Exception as error:  # noqa: BLE001 - one failing remedy must not break the verdict
            what = ": ".join(filter(None, [type(error).__name__, str(error)]))
            failures.append(f"Remedy {remedy.id} was skipped: {what}.")
    rows = _with_gains(facts, places)
    for others, _ in ends:
        rows = _widened(rows, others)
    rows = [_row_within_busy(facts, row) for row in rows]
    return _ordered(rows), failures


def _widened(rows: list[Gained], others: list[Gained]) -> list[Gained]:
    """Extend the bounds of each place to those that it has if a step takes another time."""
    places = Counter(map(_place, (*rows, *others)))
    other_of = {_place(row): row for row in others}
    wider = []
    for row in rows:
        is_of_both = places[_place(row)] == 2  # noqa: PLR2004 - one on each side
        other = other_of.get(_place(row), row) if is_of_both else row
        bounds = _extended(*((it.low, it.high, it.low_by, it.high_by) for it in (row, other)))
        low, high, low_by, high_by = bounds
        wider.append(replace(row, low=low, high=high, low_by=low_by, high_by=high_by, then=low))
    return wider


def _place(row: Gained) -> tuple[str, str | None]:
    """Return what identifies a place to which a remedy applies."""
    return row.remedy.id, row.found.name


def _extended(bounds: BoundsParts, other: BoundsParts) -> BoundsParts:
    """Extend bounds to those that hold with another cost of recording."""
    low, high, low_by, high_by = bounds
    if other[0] < low:
        low, low_by = other[0], "recording_cost"
    if other[1] > high:
        high, high_by = other[1], "recording_cost"
    return low, high, low_by, high_by


def _side_bounds(facts: Facts) -> list[tuple[Side, BoundsParts]]:
    """Return the bounds of the gain of each side, for every cost of recording.

    The cost is known as a range, over which the gains of remedies are computed, too. Like remedies,
    the upper bound leaves out GPU activities before the windows.
    """
    sets: list[list[Change]] = [[Drop(kind=kind) for kind in it] for it in _KINDS_OF.values()]
    events = [work.event for work in (*facts.kernels, *facts.copies)]
    sets += [[replace(change, events=events) for change in changes] for changes in sets]
    gains = _gains(facts, sets)
    found = zip(facts.parts["bounds"], gains, gains[len(_KINDS_OF) :], strict=False)
    return [
        (side, _of_every_cost(bounds, every, inside)) for (side, bounds), every, inside in found
    ]


def _within_busy(facts: Facts, changes: Sequence[Change], gain: float, high: float) -> float:
    """Lower an upper bound that depends on the cost of recording to what busy streams leave."""
    return max(min(high, most_gain(facts, changes)), gain)


def _side_within_busy(facts: Facts, side: Side, bounds: BoundsParts) -> BoundsParts:
    low, high, low_by, high_by = bounds
    if high_by == "recording_cost":
        gain = max(dict(facts.parts["gains"])[side], dict(facts.parts["bounds"])[side][1])
        high = _within_busy(facts, [Drop(kind=kind) for kind in _KINDS_OF[side]], gain, high)
    return low, high, low_by, high_by


def _row_within_busy(facts: Facts, row: Gained) -> Gained:
    if row.high_by != "recording_cost":
        return row
    changes = row.found.hopeful or row.found.careful
    return replace(row, high=_within_busy(facts, changes, row.gain, row.high))


def _of_every_cost(bounds: BoundsParts, every: _Gain, inside: _Gain) -> BoundsParts:
    """Extend bounds to those of the gain, as far as the cost of recording sets them."""
    low, high, *_ = bounds
    least = every[2] if every[4] == "recording_cost" else low
    most = [gain[3] for gain in (every, inside) if gain[5] == "recording_cost"]
    return _extended(bounds, (least, max([high, *most]), every[4], every[5]))


def _with_gains(facts: Facts, places: list[tuple[Remedy, Found]]) -> list[Gained]:
    sets: list[Sequence[Change]] = []
    for _, found in places:
        sets += [found.careful, found.hopeful or found.careful]
    gains = _gains(facts, sets)
    sides = {side: high for side, (_, high, *_) in facts.parts["bounds_of_cost"]}
    told = [] if facts.parts["waits_lead"] else facts.parts["sides"]
    rows = []
    for number, (remedy, found) in enumerate(places):
        both = gains[2 * number], gains[2 * number + 1]
        bounded = _bounded(facts, found.careful, found.hopeful or found.careful, both)
        row = _row_within_busy(facts, Gained(remedy, found, *bounded, then=bounded[2]))
        is_more = remedy.side in told and row.high > _LEAST_MORE + sides[remedy.side]
        rows.append(replace(row, also=_also(facts, remedy, found)) if is_more else row)
    return rows


def _bounded(
    facts: Facts,
    careful: Sequence[Change],
    hopeful: Sequence[Change],
    gains: tuple[_Gain, _Gain],
) -> _Gain:
    """Return the gain of changes with its bounds, given those of the careful and the hopeful."""
    gain_ns, gain, low, careful_high, low_by, careful_by = gains[0]
    _, _, _, high, _, high_by = gains[1]
    if careful_high > high:
        high, high_by = careful_high, careful_by
    most = _most(facts, careful)
    at_most = _most(facts, hopeful, pace=_LEAST_PACE)
    if gain > most:
        gain, gain_ns = most, min(gain_ns, round(most * facts.mean_ns))
    low = min(low, most)
    if high_by != "recording_cost":  # which may leave the host less to do before the windows
        high = min(high, max(most, at_most))
    return gain_ns, gain, low, high, low_by, high_by


def together(facts: Facts, rows: Sequence[Gained]) -> Together:
    """Compute the gain of several remedies in one graph, and what each side would gain then.

    If the host runs ahead, its work for the windows is before them, and what it would limit is not
    known.
    """
    careful = [change for row in rows for change in row.found.careful]
    hopeful = [change for row in rows for change in row.found.hopeful or row.found.careful]
    kinds_of = {} if _is_ahead(facts) else _KINDS_OF
    sides = [[*careful, *(Drop(kind=kind) for kind in kinds)] for kinds in kinds_of.values()]
    of_careful, of_hopeful, *of_sides = _gains(facts, [careful, hopeful, *sides])
    _, gain, low, high, *_ = _bounded(facts, careful, hopeful, (of_careful, of_hopeful))
    ids = {row.remedy.id for row in rows}
    for end in facts.ends():
        others = [row for row in end.once(_alone)[0] if row.remedy.id in ids]
        if len(others) == len(rows):
            other = together(end, others)
            low, high = min(low, other.low), max(high, other.high)
    high = _within_busy(facts, hopeful, gain, high)
    left = max(1.0 - of_careful[1], 1e-9)
    then = {
        side: max(with_side[1] - of_careful[1], 0.0) / left
        for side, with_side in zip(kinds_of, of_sides, strict=True)
    }
    return Together(gain, low, high, then)


def gain_of(facts: Facts, changes: Sequence[Change]) -> float:
    """Return what changes save in the mean window, at most what their side does without time."""
    [(_, gain, *_)] = _gains(facts, [changes])
    return min(gain, _most_of_side(facts, changes))


def _is_ahead(facts: Facts) -> bool:
    """Whether the host launches at least half of the GPU activities in an earlier window."""
    works = [work for work in (*facts.kernels, *facts.copies) if work.call is not None]
    earlier = [
        work
        for work in works
        if facts.place(work.call or 0).start_ns < facts.windows[work.window][0]
    ]
    return 2 * len(earlier) >= max(len(works), 1)


def _also(facts: Facts, remedy: Remedy, found: Found) -> tuple[str, ...]:
    """Return the names of what the changes of a remedy shorten in addition to its side."""
    changes = [it for it in (*found.careful, *found.hopeful) if not isinstance(it, Insert)]
    names = {_ALSO.get(change.kind or "") for change in changes}
    sides = {_side(facts, change) for change in changes}
    names |= {_ALSO[side] for side in sides if side is not None and side != remedy.side}
    return tuple(name for name in _ALSO.values() if name in names)


def _sure(row: Gained) -> float:
    """Return the certain gain of a remedy; half of an upper bound."""
    return row.low / 2 if row.remedy.is_upper_bound else row.low


def _ordered(rows: list[Gained]) -> list[Gained]:
    """Sort by certain gain; of similar gains, the cheapest remedy comes first."""
    left = sorted(rows, key=lambda row: (-round(_sure(row), 4), -round(row.high, 4)))
    ordered = []
    while left:
        least = _ALIKE * max(_sure(left[0]), 0.0)
        alike = [row for row in left if _sure(row) >= least] or left[:1]
        first = min(alike, key=lambda row: EFFORTS.index(row.remedy.effort))
        left.remove(first)
        ordered.append(first)
    return ordered


_KINDS_OF: Final[dict[Side, tuple[WorkKind, ...]]] = {
    "kernels": ("kernel",),
    "host": ("data_loading", "operator", "runtime", "host_gap", "launch", "handover"),
    "communication": ("communication",),
    "copies": ("copy",),
}
"""The kinds of time of each side, as the core counts them."""

_ALSO: Final = {
    "host": "host work",
    "kernels": "kernels",
    "copies": "memory copies",
    "communication": "communication",
    "sync_return": "waits of the host",
    "queue_full": "waits for room in the queue",
    "event_wait": "waits between streams",
    "kernel_delay": "delays between kernels",
}
"""What a remedy may shorten in addition to its side: kinds of waits and delays, and other sides."""

_SIDES: Final[dict[str, Side]] = {
    "kernel": "kernels",
    "copy": "copies",
    "fill": "copies",
    "communication": "communication",
    "operator": "host",
    "runtime": "host",
    "driver": "host",
    "python": "host",
    "annotation": "host",
    "host_gap": "host",
    "data_loading": "host",
}


def _most(facts: Facts, changes: Sequence[Change], pace: float = 1.0) -> float:
    """Return the upper bound of the gain: that of a side taking no time, and the host's pace.

    Work launched before the first window hides host time: with a faster device alone, the windows
    would seem shorter than the host allows.
    """
    return min(_most_at_pace(facts, changes, pace), _most_of_side(facts, changes))


def _most_of_side(facts: Facts, changes: Sequence[Change]) -> float:
    """Return the gain of the side that the changes affect, if it is one."""
    [side, *others] = {_side(facts, change) for change in changes} or {None}
    if others or side is None:
        return 1.0
    return max(dict(facts.parts["gains"])[side], dict(facts.parts["bounds"])[side][1], 0.0)


def _most_at_pace(facts: Facts, changes: Sequence[Change], pace: float) -> float:
    """Return the gain if a step takes `pace` times the host time that the changes leave."""
    if facts.host_pace_ns is None:
        return 1.0
    gone = [_host_time_ns(facts, change) for change in changes]
    if None in gone:
        return 1.0
    left_ns = pace * facts.host_pace_ns - facts.per_window(sum(filter(None, gone)))
    return 1.0 - max(left_ns, 0.0) / facts.mean_ns


def _host_time_ns(facts: Facts, change: Change) -> float | None:
    """Return the host time that a change saves in all windows; None if unknown."""
    if isinstance(change, RemoveWait):
        return 0.0
    if change.time_ranges is not None:
        total_ns = sum(end_ns - start_ns for _, start_ns, end_ns in change.time_ranges)
    elif change.events:
        places = [facts.place(event) for event in change.events]
        total_ns = sum(it.duration_ns or 0 for it in places if _SIDES.get(it.kind) == "host")
    elif _SIDES.get(change.kind or "") in {"kernels", "copies", "communication"}:
        total_ns = 0
    else:
        return None
    share = max(1.0 - float(change.by), 0.0) if isinstance(change, Scale) else 1.0
    return share * total_ns


def _side(facts: Facts, change: Change) -> Side | None:
    """Return the side whose time a change affects, if it is one."""
    if isinstance(change, RemoveWait):
        return None
    if change.time_ranges is not None:
        return "host"
    if change.kind is None and change.events:
        return _SIDES.get(facts.place(change.events[0]).kind)
    return _SIDES.get(change.kind or "")


def _in_turn(facts: Facts, rows: list[Gained]) -> list[Gained]:
    """Evaluate each of the first remedies after the previous ones, which can leave it no gain.

    Remedies that may not be possible do not reduce the gain of others, and are evaluated last. A
    remedy gains nothing if the previous ones drop all GPU activities that it changes.
    """
    if len(rows) < 2:  # noqa: PLR2004 - a single remedy has no other before it
        return rows
    first = sorted(rows[:_MOST_IN_TURN], key=lambda row: row.remedy.is_upper_bound)
    changes: list[Change] = []
    dropped: set[int] = set()
    sets = []
    for row in first:
        if not _has_only(facts, row, dropped):
            changes += row.found.careful
            dropped |= _dropped(row)
        sets.append([*changes])
    together = [gain for _, gain, *_ in _gains(facts, sets)]
    before = [0.0, *together[:-1]]
    then = {
        id(row): min(max(now - earlier, 0.0), max(row.low, 0.0))
        for row, now, earlier in zip(first, together, before, strict=True)
    }
    return [replace(row, then=then.get(id(row), row.then)) for row in rows]


# Changes of these kinds are of GPU activities themselves, not of their delays.
_OF_WORK: Final = frozenset({None, "kernel", "copy", "communication"})


def _has_only(facts: Facts, row: Gained, dropped: set[int]) -> bool:
    """Whether a remedy changes GPU activities, and only those that are dropped."""
    if not dropped:
        return False
    timed = [it for it in row.found.careful if isinstance(it, Drop | Replace | Scale)]
    events = {event for it in timed if it.kind in _OF_WORK for event in it.events or ()}
    works = {it for it in events if _SIDES.get(facts.place(it).kind) not in {"host", None}}
    return bool(works) and works <= dropped


def _dropped(row: Gained) -> set[int]:
    """Return the events that the certain changes of a remedy drop."""
    drops = [it for it in row.found.careful if isinstance(it, Drop) and it.matching is None]
    return {event for it in drops if it.kind in _OF_WORK for event in it.events or ()}


def _gains(facts: Facts, sets: Sequence[Sequence[Change]]) -> list[_Gain]:
    if not sets:
        return []
    return facts.core.gains([[parts_of(change) for change in changes] for changes in sets])
