"""The list of remedies, and the gain of each in the windows of a verdict."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.engine.critical_path.changes import Drop, Insert, Replace, Scale
from longpole.remedies.gains import extended, gains_after, gains_of
from longpole.remedies.limits import sides_of
from longpole.remedies.model import EFFORTS, Found, Remedy

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from longpole.engine.critical_path.changes import Change
    from longpole.remedies.facts import Facts
    from longpole.remedies.gains import Gain
    from longpole.remedies.sides import Side

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

# A remedy that gains this much more than what limits the program also shortens something else.
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
    gain: Gain
    then: float
    """Gain after the remedies listed before it."""
    also: tuple[str, ...] = ()
    """What it shortens besides what limits the program, if that alone gains less."""


class Together(NamedTuple):
    """The gain of several remedies together."""

    gain: Gain
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
    ends = [end.once(_alone)[0] for end in facts.ends()]
    places, failures = [], []
    for remedy in remedies():
        try:
            places += [(remedy.at(found), found) for found in [*remedy.find(facts)][:_MOST_OF_ONE]]
        except Exception as error:  # noqa: BLE001 - one failing remedy must not break the verdict
            what = ": ".join(filter(None, [type(error).__name__, str(error)]))
            failures.append(f"Remedy {remedy.id} was skipped: {what}.")
    rows = _with_gains(facts, places)
    for others in ends:
        rows = _widened(rows, others)
    return _ordered([_with_others(facts, row) for row in rows]), failures


def _widened(rows: list[Gained], others: list[Gained]) -> list[Gained]:
    """Extend the bounds of each place to those that it has if a step takes another time."""
    places = Counter(map(_place, (*rows, *others)))
    other_of = {_place(row): row for row in others}
    wider = []
    for row in rows:
        is_of_both = places[_place(row)] == 2  # noqa: PLR2004 - one on each side
        gain = extended(row.gain, other_of[_place(row)].gain) if is_of_both else row.gain
        wider.append(replace(row, gain=gain, then=gain.low))
    return wider


def _place(row: Gained) -> tuple[str, str | None]:
    """Return what identifies a place to which a remedy applies."""
    return row.remedy.id, row.found.name


def _with_gains(facts: Facts, places: list[tuple[Remedy, Found]]) -> list[Gained]:
    gains = gains_of(facts.core, [(found.careful, found.hopeful) for _, found in places])
    return [
        Gained(remedy, found, gain, then=gain.low)
        for (remedy, found), gain in zip(places, gains, strict=True)
    ]


def _with_others(facts: Facts, row: Gained) -> Gained:
    """Add what a remedy shortens besides what limits the program, if that alone gains less."""
    limiting = [side for side in sides_of(facts.parts["limit"]) if side in row.gain.sides]
    most = max((facts.parts["gains"][side].high for side in limiting), default=1.0)
    is_more = row.gain.high > most + _LEAST_MORE
    return replace(row, also=_also(row, limiting)) if is_more else row


def together(facts: Facts, rows: Sequence[Gained]) -> Together:
    """Compute the gain of several remedies in one graph, and what each side would gain then.

    If the host runs ahead, its work for the windows is before them, and what it would limit is not
    known.
    """
    careful = [change for row in rows for change in row.found.careful]
    hopeful = [change for row in rows for change in row.found.hopeful or row.found.careful]
    [gain] = gains_of(facts.core, [(careful, hopeful)])
    ids = {row.remedy.id for row in rows}
    for end in facts.ends():
        others = [row for row in end.once(_alone)[0] if row.remedy.id in ids]
        if len(others) == len(rows):
            gain = extended(gain, together(end, others).gain)
    return Together(gain, {} if _is_ahead(facts) else gains_after(facts.core, careful))


def _is_ahead(facts: Facts) -> bool:
    """Whether the host launches at least half of the GPU activities in an earlier window."""
    works = [work for work in (*facts.kernels, *facts.copies) if work.call is not None]
    earlier = [
        work
        for work in works
        if facts.place(work.call or 0).start_ns < facts.windows[work.window][0]
    ]
    return 2 * len(earlier) >= max(len(works), 1)


def _also(row: Gained, limiting: Collection[Side]) -> tuple[str, ...]:
    """Return the names of what a remedy shortens besides what limits the program."""
    changes = [it for it in (*row.found.careful, *row.found.hopeful) if not isinstance(it, Insert)]
    names = {_ALSO.get(change.kind or "") for change in changes}
    names |= {_ALSO.get(side) for side in {*row.gain.sides} - {*limiting, "waits"}}
    return tuple(name for name in _ALSO.values() if name in names)


def _sure(row: Gained) -> float:
    """Return the certain gain of a remedy; half of an upper bound."""
    return row.gain.low / 2 if row.remedy.is_upper_bound else row.gain.low


def _ordered(rows: list[Gained]) -> list[Gained]:
    """Sort by certain gain; of similar gains, the cheapest remedy comes first."""
    left = sorted(rows, key=lambda row: (-round(_sure(row), 4), -round(row.gain.high, 4)))
    ordered = []
    while left:
        least = _ALIKE * max(_sure(left[0]), 0.0)
        alike = [row for row in left if _sure(row) >= least] or left[:1]
        first = min(alike, key=lambda row: EFFORTS.index(row.remedy.effort))
        left.remove(first)
        ordered.append(first)
    return ordered


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
    together = [gain.value for gain in gains_of(facts.core, [(each, ()) for each in sets])]
    before = [0.0, *together[:-1]]
    then = {
        id(row): min(max(now - earlier, 0.0), max(row.gain.low, 0.0))
        for row, now, earlier in zip(first, together, before, strict=True)
    }
    return [replace(row, then=then.get(id(row), row.then)) for row in rows]


# Changes of these kinds are of GPU activities themselves, not of their delays.
_OF_WORK: Final = frozenset({None, "kernel", "copy", "communication"})
_ON_DEVICE: Final = frozenset({"kernel", "copy", "fill"})


def _has_only(facts: Facts, row: Gained, dropped: set[int]) -> bool:
    """Whether a remedy changes GPU activities, and only those that are dropped."""
    if not dropped:
        return False
    timed = [it for it in row.found.careful if isinstance(it, Drop | Replace | Scale)]
    events = {event for it in timed if it.kind in _OF_WORK for event in it.events or ()}
    works = {it for it in events if facts.place(it).kind in _ON_DEVICE}
    return bool(works) and works <= dropped


def _dropped(row: Gained) -> set[int]:
    """Return the events that the certain changes of a remedy drop."""
    drops = [it for it in row.found.careful if isinstance(it, Drop) and it.matching is None]
    return {event for it in drops if it.kind in _OF_WORK for event in it.events or ()}
