"""The list of remedies, and the gain of each in the windows of a verdict."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.engine.critical_path.changes import Insert
from longpole.remedies.gains import extended, gains_after, gains_of, measured, unmeasured
from longpole.remedies.gone import removed_by
from longpole.remedies.limits import sides_of
from longpole.remedies.model import EFFORTS, Found, Remedy
from longpole.remedies.plan import Plan, Search, lines_of, most_of, plan_of
from longpole.remedies.start_up import start_up

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from longpole.remedies.facts import Facts
    from longpole.remedies.gains import Gain
    from longpole.remedies.plan import Candidate, Line
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
    "repeated_uploads",
    "late_rank",
    "small_messages",
    "communication_overlap",
    "blocking_calls",
    "stream_waits",
    "queue_full",
    "tensor_cores",
    "mixed_precision",
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
    also: tuple[str, ...] = ()
    """What it shortens besides what limits the program, if that alone gains less."""


class Together(NamedTuple):
    """Several remedies together, one after another."""

    lines: tuple[Line, ...]
    then: dict[Side, float]
    """How much shorter the rest would be without each side; empty if unknown."""


@cache
def remedies() -> tuple[Remedy, ...]:
    """Return all remedies: those of the catalogue, then those of other packages."""
    own = [import_module(f"longpole.remedies.{name}").REMEDY for name in CATALOGUE]
    return (*own, *_added())


def remedy_of(name: str) -> Remedy:
    """Return the remedy with an ID, and with what it declares.

    Examples
    --------
    >>> remedy_of("overlap_copies").hides
    'copy'
    """
    return next(one for one in remedies() if one.id == name)


def _added() -> Iterator[Remedy]:
    if not any(_may_add(Path(folder)) for folder in sys.path):
        return
    from importlib.metadata import entry_points

    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        try:
            remedy = point.load()
        except Exception as error:  # noqa: BLE001 - other packages can raise anything
            yield _failing(point.name, error)
        else:
            yield remedy


def _may_add(folder: Path) -> bool:
    """Whether a folder of packages may have a remedy, found without `importlib.metadata`.

    The import of that takes longer than reading all entry points.
    """
    if folder.is_file():
        return True
    entries = folder.glob("*-info/entry_points.txt")
    return any(ENTRY_POINTS in it.read_text("utf-8", "replace") for it in entries)


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
    return facts.once(_alone)


def planned(facts: Facts) -> Plan:
    """Return the plan: remedies that work together, and what they save."""
    return facts.once(_planned)


def _planned(facts: Facts) -> Plan:
    rows, _ = gained(facts)
    return plan_of(facts, _searched, {_place(row): row.gain.value for row in rows})


def _searched(facts: Facts) -> Search:
    """Return where all remedies apply."""
    return facts.once(_search)


def _search(facts: Facts) -> Search:
    return Search.of(_without_start_up(facts), remedies())


def _without_start_up(facts: Facts) -> Facts:
    """Return the facts without start-up that is named by itself."""
    found = start_up(facts)
    if found is None or found.is_most:
        return facts
    return facts.without(removed_by(facts, found.changes), ())


def _alone(facts: Facts) -> tuple[list[Gained], list[str]]:
    """Compute the gain of each place by itself, for every time of a step that was measured."""
    ends = [end.once(_alone)[0] for end in facts.ends()]
    search = _searched(facts)
    rows = _with_gains(facts, [*search.candidates()])
    for others in ends:
        rows = _widened(rows, others)
    failures = [f"Remedy {name} was skipped: {why}." for name, why in search.failures.items()]
    return _ordered([_with_others(facts, row) for row in rows]), failures


def _widened(rows: list[Gained], others: list[Gained]) -> list[Gained]:
    """Extend the bounds of each place to those that it has if a step takes another time."""
    places = Counter(map(_place, (*rows, *others)))
    other_of = {_place(row): row for row in others}
    wider = []
    for row in rows:
        is_of_both = places[_place(row)] == 2  # noqa: PLR2004 - one on each side
        gain = extended(row.gain, other_of[_place(row)].gain) if is_of_both else row.gain
        wider.append(replace(row, gain=gain))
    return wider


def _place(row: Gained) -> tuple[str, str | None]:
    """Return what identifies a place to which a remedy applies."""
    return row.remedy.id, row.found.name


def _with_gains(facts: Facts, places: list[Candidate]) -> list[Gained]:
    gains = gains_of(facts.core, [(it.found.careful, it.found.hopeful) for it in places])
    rows = [Gained(it.remedy, it.found, gain) for it, gain in zip(places, gains, strict=True)]
    return [_widened_by_evidence(facts, row) for row in rows]


def _widened_by_evidence(facts: Facts, row: Gained) -> Gained:
    """Widen the gain of a remedy by what was measured of it, within what its sides take in all."""
    most = most_of(facts, row.gain)
    if not row.remedy.is_measured:
        return replace(row, gain=unmeasured(row.gain, row.gain.value, most))
    return replace(row, gain=measured(row.gain, most)) if row.remedy.may_exceed else row


def _with_others(facts: Facts, row: Gained) -> Gained:
    """Add what a remedy shortens besides what limits the program, if that alone gains less."""
    limiting = [side for side in sides_of(facts.parts["limit"]) if side in row.gain.sides]
    most = max((facts.parts["gains"][side].high for side in limiting), default=1.0)
    is_more = row.gain.high > most + _LEAST_MORE
    return replace(row, also=_also(row, limiting)) if is_more else row


def together(facts: Facts, ids: Collection[str]) -> Together:
    """Compute the gain of several remedies in one graph, and what each side would gain then.

    If the host runs ahead, its work for the windows is before them, and what it would limit is not
    known.
    """
    first = [line.key for line in planned(facts).lines if line.remedy.id in ids]
    keys = [_place(row) for row in gained(facts)[0] if row.remedy.id in ids]
    lines = lines_of(facts, _searched, [*dict.fromkeys([*first, *keys])], ids)
    careful = [change for line in lines for change in line.found.careful]
    then = {} if _is_ahead(facts) or not lines else gains_after(facts.core, careful)
    return Together(lines, then)


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
