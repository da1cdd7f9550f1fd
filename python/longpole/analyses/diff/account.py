"""The critical paths of two sides, shared out over kinds and over what changed."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from longpole.analyses.diff.values import PathChange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.analyses.diff.changes import Group
    from longpole.analyses.diff.sides import Side

__all__ = ["path_changes", "path_times"]


def path_changes(base: Side, new: Side) -> tuple[PathChange, ...]:
    """Give the path of a mean step by kind, what changed most first; changes sum to the whole."""
    sides = [_by_kind(side) for side in (base, new)]
    rows = [
        PathChange(kind, sides[0].get(kind, 0.0), sides[1].get(kind, 0.0))
        for kind in sorted({*sides[0], *sides[1]})
    ]
    return tuple(sorted(rows, key=lambda row: (-abs(row.change_ns), row.kind)))


def path_times(side: Side, number: int, groups: Sequence[Group]) -> list[float]:
    """Give the time of each group on the path of a mean step of a side."""
    import polars as pl

    by_event: dict[tuple[str, int], int] = {}
    by_name: dict[tuple[str, str | None], int] = {}
    for row, group in enumerate(groups):
        by_event |= dict.fromkeys(((group.kind, event) for event in group.events[number]), row)
        if group.kind in {"runtime", "host_gap"}:
            by_name[group.kind, group.base_names[0]] = row
        elif group.kind == "data_loading":
            by_name[group.kind, None] = row
    times: dict[int, float] = defaultdict(float)
    segments = side.account_path.segments.select(
        pl.col("kind").cast(pl.String), "event", pl.col("name").cast(pl.String), "duration_ns"
    )
    for kind, event, name, duration_ns in segments.iter_rows():
        found = by_event.get((kind, event))
        if found is None:
            found = by_name.get((kind, _told_name(kind, name)))
        if found is not None:
            times[found] += duration_ns
    return [times[row] / side.n_account for row in range(len(groups))]


def _told_name(kind: str, name: str | None) -> str | None:
    """Give the name that a group without events has."""
    if kind == "data_loading" or name is None:
        return None
    return re.sub(r"^(ProfilerStep#)\d+$", r"\1N", name)


def _by_kind(side: Side) -> dict[str, float]:
    return {
        kind: duration_ns / side.n_account
        for kind, duration_ns in side.account_path.by_kind.select("kind", "duration_ns").iter_rows()
    }
