"""Compares the critical paths of both sides by kind, and computes the effect of one change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from longpole.diffs.values import PathChange
from longpole.engine.critical_path.changes import Drop, Scale, name_pattern

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from longpole.diffs.changes import Group
    from longpole.diffs.sides import Side
    from longpole.engine.critical_path.changes import Change
    from longpole.engine.critical_path.path import CriticalPath

# Work of these kinds is distinguished only by name.
_NAMED: Final = ("runtime", "host_gap", "data_loading")
# The graph of this many last steps is recomputed; more take time without changing the result.
_MOST_STEPS: Final = 6

_ANY_STEP: Final = "ProfilerStep#N"


def path_changes(base: Side, new: Side) -> tuple[PathChange, ...]:
    """Return the path of a mean step by kind, largest change first; changes sum to the whole."""
    together = [_by_kind(side.account_path, side.n_account) for side in (base, new)]
    alone = [_by_kind(side.step_path(side.median_row), 1) for side in (base, new)]
    columns = [*together, *alone]
    work = [_work_by_kind(side) for side in (base, new)]
    is_work = {kind for each in work for kind in each}
    rows = [
        PathChange(
            kind,
            *(column.get(kind, 0) for column in columns),
            *(each.get(kind, 0.0) if kind in is_work else None for each in work),
        )
        for kind in sorted({kind for column in columns for kind in column})
    ]
    return tuple(sorted(rows, key=lambda row: (-abs(row.change_ns), row.kind)))


def path_times(side: Side, number: int, groups: Sequence[Group]) -> list[float]:
    """Return the time of each group on the path of one side's mean step."""
    import numpy as np
    import polars as pl

    times_ns = np.zeros(len(groups))
    rows: dict[str, list[int]] = {}
    for row, group in enumerate(groups):
        rows.setdefault(group.kind, []).append(row)
    segments = side.account_path.segments.select("kind", "event", "name", "duration_ns")
    for kind, of_kind in rows.items():
        parts = segments.filter(pl.col("kind") == kind)
        found = _rows_of(parts, kind, {row: groups[row] for row in of_kind}, number, side)
        known = found >= 0
        np.add.at(times_ns, found[known], parts["duration_ns"].to_numpy()[known])
    return list(map(float, times_ns / side.n_account))


def _rows_of(
    segments: pl.DataFrame, kind: str, groups: Mapping[int, Group], number: int, side: Side
) -> NDArray[np.int64]:
    """Return the group of each segment of a kind, by event or else by name; -1 without a group."""
    import numpy as np

    of_event = np.full(side.events.height + 1, -1)  # the last one is for segments without an event
    for row, group in groups.items():
        of_event[group.events[number]] = row
    found: NDArray[np.int64] = of_event[segments["event"].fill_null(side.events.height).to_numpy()]
    lost = found < 0
    if kind in _NAMED and lost.any():
        by_name = {group.base_names[0]: row for row, group in groups.items()}
        names = segments["name"].filter(lost)
        each = names.unique(maintain_order=True)
        rows = [by_name.get(_told_name(kind, name), -1) for name in each.cast(str)]
        place = dict(zip(each.to_physical().to_list(), rows, strict=True))
        found[lost] = [place[code] for code in names.to_physical().to_list()]
    return found


def _told_name(kind: str, name: str | None) -> str | None:
    """Return the name of a group without events."""
    if kind == "data_loading" or name is None:
        return None
    return re.sub(r"^(ProfilerStep#)\d+$", r"\1N", name)


def _by_kind(path: CriticalPath, n_steps: int) -> dict[str, float]:
    """Return the time of each kind per step, on a path through some steps."""
    return {str(row["kind"]): row["duration_ns"] / n_steps for row in path.kind_totals}


def _work_by_kind(side: Side) -> dict[str, float]:
    """Return the total time of work of each kind in a mean step."""
    import polars as pl

    sums = side.work.group_by(pl.col("kind").cast(pl.String)).agg(pl.col("work_ns").sum())
    return {kind: time_ns / side.n_steps for kind, time_ns in sums.iter_rows()}


def effect_ns(base: Side, new: Side, group: Group) -> float | None:
    """Return how much longer a step is if only this work is as on the new side.

    On the base, the work takes as long as on the new side; on the new side, as long as on the base.
    Work that only one side has is removed there. The effect is the smaller of both, and at most
    the time by which the work itself changed: what other work hides on one side does not change
    the step. None if the work cannot be distinguished by name or event.
    """
    before, after = (float(times.mean()) for times in group.times_ns)
    found: list[float] = []
    for side, number, (own_ns, other_ns), sign in (
        (base, 0, (before, after), -1),
        (new, 1, (after, before), 1),
    ):
        if own_ns:
            change = _changed(group, number, by=other_ns / own_ns if other_ns else None)
            if change is None:
                return None
            found.append(sign * gain_ns(side, [change]))
    smallest = min(found, key=abs, default=0.0)
    if min(found, default=0.0) < 0 < max(found, default=0.0):
        return 0.0
    most_ns = abs(after - before)
    return max(-most_ns, min(most_ns, smallest))


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
    return name_pattern(str(name))


def gain_ns(side: Side, changes: Sequence[Change]) -> float:
    """Return the mean gain of some changes in the last steps."""
    if side.unit != "step":
        return side.path.what_if(changes).gain_ns / side.n_steps
    paths = [side.step_path(row) for row in range(side.n_steps)[-_MOST_STEPS:]]
    changed = paths[0].what_if(changes)
    return sum(map(changed.gain_in, paths)) / len(paths)
