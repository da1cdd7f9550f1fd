"""Host work that has another name on each side: by role, by function and by place.

Names that both sides have are never changed. Of the others, runtime API calls of two vendors
correspond if they have the same role, Python functions if only their line differs, and annotations
and other functions if they begin with the same operator, in the same order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from longpole.diffs.sides import Side

    Key = tuple[str, str | None]
    Pair = tuple[tuple[str | None, ...], tuple[str | None, ...]]

# Kinds of events that only group others, so that their place tells what they are.
_WITH_PLACE: Final = ("annotation", "python")

# The line of a Python function, as in "train.py(88): main".
_LINE: Final = re.compile(r"\(\d+\)(?=: )")


def aliases_of(
    sides: tuple[Side, Side], events: tuple[Mapping[Key, list[int]], Mapping[Key, list[int]]]
) -> dict[Key, Pair]:
    """Return the names of both sides for each name that has another one on the other side.

    Parameters
    ----------
    sides
        Both sides.
    events
        The events of each kind and name of both sides.
    """
    alone = [
        {key: rows for key, rows in own.items() if key not in other}
        for own, other in (events, events[::-1])
    ]
    found: dict[Key, Pair] = {}
    for keys in (_by_function, _by_role, _by_place):
        grouped = [_grouped(keys(side, rows)) for side, rows in zip(sides, alone, strict=True)]
        for key in grouped[0].keys() & grouped[1].keys():
            names = [[it for it in group[key] if it not in found] for group in grouped]
            if all(names):
                pair = tuple(name for _, name in names[0]), tuple(name for _, name in names[1])
                found.update((it, pair) for it in (*names[0], *names[1]))
        alone = [{key: rows for key, rows in own.items() if key not in found} for own in alone]
    return found


def _grouped(keyed: Iterable[tuple[Key, Hashable]]) -> dict[Hashable, list[Key]]:
    found: dict[Hashable, list[Key]] = defaultdict(list)
    for name, key in keyed:
        found[key].append(name)
    return found


def _by_function(_side: Side, names: Mapping[Key, list[int]]) -> Iterable[tuple[Key, Hashable]]:
    """Return the names of Python functions without their line."""
    for kind, name in names:
        plain = _LINE.sub("", name or "", count=1)
        if plain != name:
            yield (kind, name), (kind, plain)


def _by_role(side: Side, names: Mapping[Key, list[int]]) -> Iterable[tuple[Key, Hashable]]:
    """Return the role of runtime API calls, such as the launch of a kernel."""
    calls = {events[0]: key for key, events in names.items() if key[0] == "runtime" and events}
    if not calls:
        return
    roles = side.trace.api_roles
    known = roles.filter(roles["event"].is_in(list(calls)))
    for event, role in zip(known["event"], known["role"].cast(str), strict=True):
        if role != "other":
            yield calls[event], role


def _by_place(side: Side, names: Mapping[Key, list[int]]) -> Iterable[tuple[Key, Hashable]]:
    """Return the first operator inside annotations and functions, and their order among these."""
    first = {
        key: min(events)
        for key, events in names.items()
        if key[0] == "host_gap" and events and side.events["kind"][events[0]] in _WITH_PLACE
    }
    if not first:
        return
    operators = _operators(side)
    n_like: dict[Hashable, int] = defaultdict(int)
    for key, event in sorted(first.items(), key=lambda item: item[1]):
        per_step = round(len(names[key]) / side.n_steps, 2)
        kind = side.events["kind"][event]
        place = (kind, _first_inside(side, event, operators), per_step)
        yield key, (*place, n_like[place])
        n_like[place] += 1


def _operators(side: Side) -> dict[int, tuple[NDArray[np.int64], list[str]]]:
    """Return the start and the name of the operators of each thread, in order."""
    import polars as pl

    found = side.events.filter(pl.col("kind") == "operator").sort("start_ns")
    return {
        rows["lane"][0]: (rows["start_ns"].to_numpy(), rows["name"].cast(str).to_list())
        for rows in found.partition_by("lane")
    }


def _first_inside(
    side: Side, event: int, operators: Mapping[int, tuple[NDArray[np.int64], list[str]]]
) -> str | None:
    """Return the first operator inside an annotation, or None."""
    import numpy as np

    columns = side.events[event].select("lane", "start_ns", "duration_ns")
    lane, start_ns, duration_ns = columns.row(0)
    starts_ns, names = operators.get(lane, (np.zeros(0, np.int64), []))
    first = int(np.searchsorted(starts_ns, start_ns))
    is_inside = first < len(names) and starts_ns[first] <= start_ns + (duration_ns or 0)
    return names[first] if is_inside else None
