"""The effect of one change on the length of a step, by the what-if of the critical path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from longpole.critical_path.changes import Drop, Scale

if TYPE_CHECKING:
    from longpole.analyses.diff.changes import Group
    from longpole.analyses.diff.sides import Side
    from longpole.critical_path.changes import Change

__all__ = ["effect_ns"]

# The graph of this many last steps is recomputed; more take time without changing the result.
_MOST_STEPS: Final = 6

_ANY_STEP: Final = "ProfilerStep#N"


def effect_ns(base: Side, new: Side, group: Group) -> float | None:
    """Return how much longer a step is if only this work is as on the new side.

    Work of the base takes as long as on the new side; work that the base lacks is removed from the
    new side. None if the work cannot be distinguished by name or event.
    """
    before, after = (float(times.mean()) for times in group.times_ns)
    if before:
        change = _changed(group, 0, by=after / before)
        return None if change is None else -_gain_ns(base, change)
    dropped = _changed(group, 1, by=None)
    return None if dropped is None else _gain_ns(new, dropped)


def _changed(group: Group, number: int, by: float | None) -> Change | None:
    """Return the change of this work on one side."""
    names = (group.base_names, group.new_names)[number]
    what: dict[str, Any] = {"kind": group.kind}
    if group.kind in {"kernel", "copy", "communication", "operator"}:
        what["events"] = group.events[number].tolist()
    if group.kind in {"operator", "runtime", "host_gap"}:
        if None in names:
            return None
        what["matching"] = f"^(?:{'|'.join(map(_pattern, names))})$"
    return Drop(**what) if by is None else Scale(by=round(by, 9), **what)


def _pattern(name: str | None) -> str:
    if name == _ANY_STEP:
        return r"ProfilerStep#\d+"
    return re.escape(str(name))


def _gain_ns(side: Side, change: Change) -> float:
    """Return the mean gain of the last steps."""
    if not side.has_steps:
        return float(side.path.what_if(change).gain_ns)
    paths = [side.step_path(row) for row in range(side.n_steps)[-_MOST_STEPS:]]
    changed = paths[0].what_if(change)
    return sum(map(changed.gain_in, paths)) / len(paths)
