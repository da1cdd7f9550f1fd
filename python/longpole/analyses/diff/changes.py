"""What changed of the kernels, calls and functions of two sides: time and number in a step."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from longpole.analyses.diff.matching import match_sequences, places_of
from longpole.analyses.diff.noise import is_beyond_noise, moderated_t
from longpole.analyses.diff.sequences import activities, operators
from longpole.stacks import ADDRESS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np
    from numpy.typing import NDArray

    from longpole.analyses.diff.matching import Match, Relation
    from longpole.analyses.diff.sequences import Sequence
    from longpole.analyses.diff.sides import Side

__all__ = ["STEP_NAME", "Group", "Work", "work_of"]

Names = tuple[str | None, ...]

_DEVICE_KINDS: Final = ("kernel", "copy", "communication")
_BY_NAME: Final = ("runtime", "host_gap")

STEP_NAME: Final = (r"^(ProfilerStep#)\d+$", "${1}N")
"""What the annotations of steps are called, whatever their number."""
_CLOSE: Final = ("same", "reshaped", "renamed")


@dataclass(frozen=True)
class Group:
    """Work of one kind that is the same on both sides, or took each other's place."""

    kind: str
    relation: Relation
    base_names: Names
    new_names: Names
    times_ns: tuple[NDArray[np.float64], NDArray[np.float64]]
    """Of each step of either side."""
    counts: tuple[NDArray[np.int64], NDArray[np.int64]]
    events: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))

    @property
    def key(self) -> tuple[str, str, Names, Names]:
        """Tell it from all others."""
        return (self.kind, self.relation, self.base_names, self.new_names)


@dataclass(frozen=True)
class Work:
    """All groups, and how far the two sides are the same program."""

    groups: tuple[Group, ...]
    t: tuple[float | None, ...]
    """By how many standard errors of the steps each group differs."""
    stands_out: tuple[bool, ...]
    similarity: float
    """The share of the launches, operators and their names that both sides have in common."""
    n_changes: dict[str, int]
    """How many launches of a step stand in which relation."""


def work_of(base: Side, new: Side) -> Work:
    """Match all work of two sides, and weigh its changes against the noise of the steps."""
    collected = _Collected(base, new)
    similar = [
        collected.sequences(activities, _DEVICE_KINDS),
        collected.sequences(operators, ("operator",)),
    ]
    collected.names()
    groups = collected.groups()
    t = _standard_errors(groups)
    n_steps = base.n_steps + new.n_steps
    stands_out = [
        _is_structural(group) or (each is not None and is_beyond_noise(each, n_steps, len(groups)))
        for group, each in zip(groups, t, strict=True)
    ]
    return Work(
        groups=tuple(groups),
        t=tuple(t),
        stands_out=tuple(stands_out),
        similarity=max(similar),
        n_changes=collected.n_changes,
    )


def _is_structural(group: Group) -> bool:
    """Tell whether a group is there on one side only, or more often: no noise explains that."""
    base, new = group.counts
    return bool(base.min() > new.max() or new.min() > base.max())


def _standard_errors(groups: list[Group]) -> list[float | None]:
    """Weigh groups against the others of their kind: host and device differ in their noise."""
    import numpy as np

    found: list[float | None] = [None] * len(groups)
    for is_device in (True, False):
        is_kind = [(group.kind in _DEVICE_KINDS) == is_device for group in groups]
        rows = [row for row, is_wanted in enumerate(is_kind) if is_wanted]
        if not rows:
            continue
        sides = [np.array([groups[row].times_ns[side] for row in rows]) for side in (0, 1)]
        t = moderated_t(sides[0], sides[1])
        for row, value in zip(rows, [] if t is None else t.tolist(), strict=False):
            found[row] = value
    return found


class _Collected:
    """Times, numbers and events of each group, as they are found."""

    def __init__(self, base: Side, new: Side) -> None:
        self.sides = (base, new)
        self.found: dict[tuple[str, str, Names, Names], Group] = {}
        self.n_changes: dict[str, int] = defaultdict(int)

    def sequences(self, of: Callable[[Side], list[Sequence]], kinds: tuple[str, ...]) -> float:
        """Match the sequences of the median steps; give the share of them that is the same."""
        steps = [of(side) for side in self.sides]
        usual = [each[side.median_row] for each, side in zip(steps, self.sides, strict=True)]
        matches = match_sequences(usual[0], usual[1])
        for match in matches:
            self.n_changes[match.relation] += 1
        for number, side in enumerate(self.sides):
            keys = self._keys_of_places(matches, usual, number)
            works = _work_by_event(side, kinds)
            names = _names_of(side, steps[number])
            for row, (step, names_) in enumerate(zip(steps[number], names, strict=True)):
                places = places_of(step, usual[number]).tolist()
                told = [keys.get(place) for place in places]
                self._add_step(
                    (number, row), zip(step.events.tolist(), told, names_, strict=True), works
                )
        return _similarity(matches, usual)

    def names(self) -> None:
        """Add the work of the host outside operators, by name."""
        import polars as pl

        for number, side in enumerate(self.sides):
            text = pl.col("name").cast(pl.String)
            name = text.str.replace(*STEP_NAME).str.replace_all(ADDRESS, "")
            names = side.trace.events.select("event", name)
            kind = pl.col("kind").cast(pl.String)
            rows = side.work.filter(kind.is_in([*_BY_NAME, "data_loading"]))
            rows = rows.with_columns(kind).join(names, on="event", how="left")
            for event, kind_, row, work_ns, name in rows.select(
                "event", "kind", "row", "work_ns", "name"
            ).iter_rows():
                names_ = (None,) if kind_ == "data_loading" else (name,)
                group = self._group(kind_, "same", names_, names_)
                self._count(group, number, row, work_ns, event)

    def groups(self) -> list[Group]:
        """Give all groups in a fixed order."""

        def order(group: Group) -> tuple[object, ...]:
            names = (group.base_names, group.new_names)
            return (group.kind, group.relation, *(tuple(map(str, side)) for side in names))

        return sorted(self.found.values(), key=order)

    def _keys_of_places(
        self, matches: Iterable[Match], usual: list[Sequence], number: int
    ) -> dict[int, tuple[Relation, Names, Names]]:
        """Give the group of each place of the median step of a side."""
        sides = zip(self.sides, usual, strict=True)
        names = [names for side, step in sides for names in _names_of(side, [step])]
        keys: dict[int, tuple[Relation, Names, Names]] = {}
        for match in matches:
            base = tuple(names[0][place] for place in match.base)
            new = tuple(names[1][place] for place in match.new)
            key = (_told(match.relation, base, new), base, new)
            keys |= dict.fromkeys(match.base if number == 0 else match.new, key)
        return keys

    def _add_step(
        self,
        at: tuple[int, int],
        events: Iterable[tuple[int, tuple[Relation, Names, Names] | None, str | None]],
        works: dict[int, tuple[str, int]],
    ) -> None:
        """Add the events of one step of a side to their groups: each with its group and name."""
        number, row = at
        for event, key, name in events:
            if event in works:
                kind, work_ns = works[event]
                group = self._group(kind, *(key or ("same", (name,), (name,))))
                self._count(group, number, row, work_ns, event)

    def _group(self, kind: str, relation: Relation, base: Names, new: Names) -> Group:
        import numpy as np

        key = (kind, relation, base, new)
        if key not in self.found:
            sizes = [side.n_steps for side in self.sides]
            self.found[key] = Group(
                kind,
                relation,
                base,
                new,
                (np.zeros(sizes[0]), np.zeros(sizes[1])),
                (np.zeros(sizes[0], np.int64), np.zeros(sizes[1], np.int64)),
            )
        return self.found[key]

    @staticmethod
    def _count(group: Group, number: int, row: int, work_ns: int, event: int | None) -> None:
        group.times_ns[number][row] += work_ns
        group.counts[number][row] += 1
        if event is not None:
            group.events[number].append(event)


def _told(relation: Relation, base: Names, new: Names) -> Relation:
    """Tell what moved, and kept its name, like what stayed: its work is the same."""
    return "same" if relation == "moved" and base == new else relation


def _names_of(side: Side, steps: list[Sequence]) -> list[list[str | None]]:
    """Give the names of the events of each step."""
    import numpy as np

    events = np.concatenate([step.events for step in steps])
    names = iter(side.trace.events["name"].gather(events).cast(str).to_list())
    return [[*islice(names, len(step.events))] for step in steps]


def _work_by_event(side: Side, kinds: tuple[str, ...]) -> dict[int, tuple[str, int]]:
    import polars as pl

    kind = pl.col("kind").cast(pl.String)
    rows = side.work.filter(kind.is_in(kinds)).select("event", kind, "work_ns")
    return {event: (kind, work_ns) for event, kind, work_ns in rows.iter_rows()}


def _similarity(matches: Iterable[Match], usual: list[Sequence]) -> float:
    """Give the share of both sides that has a counterpart of the same stack or name."""
    n_all = len(usual[0].events) + len(usual[1].events)
    n_close = sum(match.relation in _CLOSE and _is_close(match, usual) for match in matches)
    return 2 * n_close / n_all if n_all else 0.0


def _is_close(match: Match, usual: list[Sequence]) -> bool:
    """Tell whether a pair has a key in common, and not its place alone."""
    [old], [now] = match.base, match.new
    return any(
        usual[0].keys[round_][old] == usual[1].keys[round_][now]
        for round_ in range(len(usual[0].keys) - 1)
    )
