"""The changes of the work of a step, sorted by what each does to the step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.diffs.account import effect_ns, path_times
from longpole.diffs.counts import shapes_of
from longpole.diffs.order import order_changes
from longpole.diffs.values import Change

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from longpole.diffs.changes import Group, Work
    from longpole.diffs.sides import Side

# Maximum number of changes whose effect is computed with the graph.
_MOST_EFFECTS: Final = 8


def changes_of(pair: tuple[Side, Side], work: Work) -> tuple[Change, ...]:
    """Sort the changes: those beyond the noise first, by their effect on the step."""
    paths = [path_times(side, number, work.groups) for number, side in enumerate(pair)]
    worth = _worth_timing(work) if work.is_related else []
    effects = {row: effect_ns(*pair, work.groups[row]) for row in worth}
    rows = [
        _change(pair, work, row, (paths[0][row], paths[1][row]), effects.get(row))
        for row in range(len(work.groups))
    ]
    if work.is_related and not work.has_python_on_one_side:
        rows += order_changes(pair, work.groups)
    return tuple(sorted(rows, key=_order))


def _worth_timing(work: Work) -> list[int]:
    """Choose the changes whose effect is computed: those beyond the noise, or else the closest."""
    moved = [row for row, group in enumerate(work.groups) if _size(group)]
    rows = [row for row in moved if work.stands_out[row]]
    rows.sort(key=lambda row: -_size(work.groups[row]))
    if rows:
        return rows[:_MOST_EFFECTS]
    moved.sort(key=lambda row: (-abs(work.t[row] or 0.0), -_size(work.groups[row])))
    return moved[: _MOST_EFFECTS // 2]


def _size(group: Group) -> float:
    return abs(float(group.times_ns[1].mean() - group.times_ns[0].mean()))


def _order(change: Change) -> tuple[object, ...]:
    if change.stands_out:
        effect = abs(change.effect_ns or 0.0)
        return (False, -effect, -abs(change.change_ns), change.kind, change.name)
    return (True, -abs(change.t or 0.0), -abs(change.change_ns), change.kind, change.name)


def _change(
    pair: tuple[Side, Side],
    work: Work,
    row: int,
    paths: tuple[float, float],
    effect: float | None,
) -> Change:
    group = work.groups[row]
    shapes = [
        shapes_of(side, group.kind, group.events[number]) if group.relation == "reshaped" else ()
        for number, side in enumerate(pair)
    ]
    return Change(
        kind=group.kind,
        relation=group.relation,
        base_names=group.base_names,
        new_names=group.new_names,
        base_ns=float(group.times_ns[0].mean()),
        new_ns=float(group.times_ns[1].mean()),
        base_count=float(group.counts[0].mean()),
        new_count=float(group.counts[1].mean()),
        base_path_ns=paths[0],
        new_path_ns=paths[1],
        t=work.t[row],
        stands_out=work.stands_out[row],
        effect_ns=effect,
        base_shapes=shapes[0],
        new_shapes=shapes[1],
        base_event=_longest(pair[0], group.events[0]),
        new_event=_longest(pair[1], group.events[1]),
    )


def _longest(side: Side, events: NDArray[np.uint32]) -> int | None:
    """Return the longest of some events."""
    return int(events[side.durations_ns[events].argmax()]) if len(events) else None
