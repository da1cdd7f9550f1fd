"""Changes of order: overlap that was lost or won, and waits that were added or removed.

They change the length of a step although no work takes longer, so the effect of each is at most the
change of the step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.diffs.account import gain_ns
from longpole.diffs.judgement import is_beyond_noise, moderated_t
from longpole.diffs.overlap import overlaps
from longpole.diffs.values import Change
from longpole.engine.critical_path.changes import Drop, RemoveWait

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from longpole.diffs.changes import Group
    from longpole.diffs.matching import Relation
    from longpole.diffs.sides import Side

EXPOSED: Final = "exposed"
"""Kind of the time in which work runs without a concurrent kernel."""
WAIT: Final = "wait"
"""Kind of calls that wait for the GPU."""

_KINDS: Final = ("communication", "copy")

# If the work itself changed by more than this part of its exposed time, its order did not change.
_OF_WORK: Final = 0.5

# Fewer calls more or less in a mean step do not count.
_LEAST_CALLS: Final = 0.5
_MOST_CALLS: Final = 3


def order_changes(pair: tuple[Side, Side], groups: Iterable[Group]) -> list[Change]:
    """Return the changes of order that are beyond the noise of the steps."""
    return [*_exposed(pair), *_waits(pair, list(groups))]


def _exposed(pair: tuple[Side, Side]) -> Iterator[Change]:
    """Return the kinds of work that are exposed for longer or shorter than before."""
    import numpy as np

    both = {kind: [overlaps(side, kind) for side in pair] for kind in _KINDS}
    apart = [
        np.array([both[kind][side][0] - both[kind][side][1] for kind in _KINDS]) for side in (0, 1)
    ]
    t = moderated_t(apart[0], apart[1])
    if t is None:
        return
    n_steps = pair[0].n_steps + pair[1].n_steps
    for row, kind in enumerate(_KINDS):
        base_ns, new_ns = (float(each[row].mean()) for each in apart)
        more_ns = new_ns - base_ns
        work_ns = [float(times.mean()) for times, _ in both[kind]]
        is_order = abs(work_ns[1] - work_ns[0]) <= _OF_WORK * abs(more_ns)
        if more_ns and is_order and is_beyond_noise(float(t[row]), n_steps, len(_KINDS)):
            effect_ns = _at_most_the_change(more_ns, pair)
            yield _change(EXPOSED, kind, (base_ns, new_ns), float(t[row]), effect_ns)


def _at_most_the_change(effect_ns: float, pair: tuple[Side, Side]) -> float:
    """Limit an effect to the change of the mean step; 0 if they have opposite directions."""
    change_ns = pair[1].mean_ns - pair[0].mean_ns
    if effect_ns * change_ns <= 0:
        return 0.0
    return min(effect_ns, change_ns, key=abs)


def _waits(pair: tuple[Side, Side], groups: Iterable[Group]) -> Iterator[Change]:
    """Return the calls that wait which only one side has, or has more of.

    If these are in operators that only one side has, the effect includes that of the operators.
    """
    alone = _operators_alone(pair, groups)
    sides = [_waiting_calls(side) for side in pair]
    found = []
    for place in sorted({**sides[0], **sides[1]}):
        each = [side.get(place, []) for side in sides]
        counts = [len(calls) / side.n_steps for calls, side in zip(each, pair, strict=True)]
        if abs(counts[1] - counts[0]) < _LEAST_CALLS:
            continue
        times_ns = [_time_ns(side, calls) for side, calls in zip(pair, each, strict=True)]
        found.append((abs(times_ns[1] - times_ns[0]), place, each, counts, times_ns))
    found.sort(key=lambda row: (-row[0], row[1]))
    for _, place, each, counts, times_ns in found[:_MOST_CALLS]:
        more = int(counts[1] > counts[0])
        every = [call for calls in sides[more].values() for call in calls]
        gained_ns = _gained_ns(pair[more], (each[more], every), counts, alone[more])
        effect_ns = _at_most_the_change(gained_ns if more else -gained_ns, pair)
        relation: Relation = "same" if min(counts) else "added" if more else "removed"
        told = {"relation": relation, "counts": counts}
        yield _change(WAIT, place, (times_ns[0], times_ns[1]), None, effect_ns, **told)


def _operators_alone(pair: tuple[Side, Side], groups: Iterable[Group]) -> tuple[set[int], set[int]]:
    """Return the operators that were removed from the base, and those added on the new side."""
    found: tuple[set[int], set[int]] = (set(), set())
    for group in groups:
        if group.kind == "operator" and group.relation in {"added", "removed"}:
            for number in range(len(pair)):
                found[number].update(group.events[number].tolist())
    return found


def _gained_ns(
    side: Side, calls_and_every: tuple[list[int], list[int]], counts: list[float], alone: set[int]
) -> float:
    """Return how much shorter a step is without the calls that the other side does not have.

    Operators around them may wait in several calls, which are removed together.
    """
    calls, every = calls_and_every
    tops = {call: _outermost(side, call, alone) for call in every}
    removed = {tops[call] for call in calls} - {None}
    part = abs(counts[1] - counts[0]) / max(counts)
    if removed and len(removed) >= part * len(calls) / 2:
        waits = [call for call, top in tops.items() if top in removed]
        operators = sorted(top for top in removed if top is not None)
        return gain_ns(side, [RemoveWait(events=waits), Drop(events=operators)])
    return part * gain_ns(side, [RemoveWait(events=calls)])


def _outermost(side: Side, call: int, alone: set[int]) -> int | None:
    """Return the outermost of some operators around a call, or None."""
    found, event = None, side.events["parent"][call]
    while event is not None:
        found = event if event in alone else found
        event = side.events["parent"][event]
    return found


def _waiting_calls(side: Side) -> dict[str, list[int]]:
    """Return the calls that wait in the steps, by name and operator."""
    calls = side.trace.blocking_calls["event"]
    rows = side.rows_at(side.events["start_ns"].gather(calls).to_numpy())
    events: NDArray[np.uint32] = calls.to_numpy()[rows >= 0]
    names, kinds, parents = (side.events[name] for name in ("name", "kind", "parent"))
    found: dict[str, list[int]] = {}
    for event in events.tolist():
        above = parents[event]
        where = f" in {names[above]}" if above is not None and kinds[above] == "operator" else ""
        found.setdefault(f"{names[event]}{where}", []).append(event)
    return found


def _time_ns(side: Side, events: list[int]) -> float:
    return float(side.durations_ns[events].clip(min=0).sum()) / side.n_steps


def _change(
    kind: str,
    name: str,
    times_ns: tuple[float, float],
    t: float | None,
    effect_ns: float,
    **told: Any,
) -> Change:
    relation, counts = told.get("relation", "same"), told.get("counts", (1.0, 1.0))
    return Change(
        kind=kind,
        relation=relation,
        base_names=() if relation == "added" else (name,),
        new_names=() if relation == "removed" else (name,),
        base_ns=times_ns[0],
        new_ns=times_ns[1],
        base_count=counts[0],
        new_count=counts[1],
        base_path_ns=0.0,
        new_path_ns=0.0,
        t=t,
        stands_out=True,
        effect_ns=effect_ns,
        base_shapes=(),
        new_shapes=(),
        base_event=None,
        new_event=None,
    )
