"""Compares the kernels, calls and functions of both sides: time and number per step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from longpole.diffs.aliases import aliases_of
from longpole.diffs.judgement import is_beyond_noise, moderated_t
from longpole.diffs.machine import has_python, most_of_python_ns
from longpole.diffs.matching import match_sequences, places_of
from longpole.diffs.sequences import activities, operators
from longpole.diffs.sides import one_of
from longpole.trace.stacks import ADDRESS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from longpole.diffs.matching import Match, Relation
    from longpole.diffs.sequences import Sequence
    from longpole.diffs.sides import Side

Names = tuple[str | None, ...]
Told = tuple["Relation", Names, Names]

_DEVICE_KINDS: Final = ("kernel", "copy", "communication")
_BY_NAME: Final = ("runtime", "host_gap")
_HOST_KINDS: Final = ("operator", *_BY_NAME, "data_loading", "handover")

# With less in common, two traces are from different programs. Runs of one program on two devices
# share their operators; two models of one library share only the common operators.
_LEAST_SIMILAR: Final = 0.4

HANDOVER: Final = "handover"
HANDOFF: Final = "before another thread"
"""Name of the time from the last work of a thread to the first work of the one it starts."""

STEP_NAME: Final = (r"^(ProfilerStep#)\d+$", "${1}N")
"""Names of step annotations, with any number."""
_CLOSE: Final = ("same", "reshaped", "renamed")


@dataclass(frozen=True)
class Group:
    """Work of one kind that is the same on both sides, or replaced each other."""

    kind: str
    relation: Relation
    base_names: Names
    new_names: Names
    times_ns: tuple[NDArray[np.float64], NDArray[np.float64]]
    """Time in each step of both sides, in ns."""
    counts: tuple[NDArray[np.int64], NDArray[np.int64]]
    events: tuple[NDArray[np.uint32], NDArray[np.uint32]]

    @property
    def change_ns(self) -> float:
        """Return by how much its time in a mean step changed, in any direction."""
        return abs(float(self.times_ns[1].mean() - self.times_ns[0].mean()))

    @property
    def has_same_counts(self) -> bool:
        """Whether each step of both sides has the same number, with the same names."""
        import numpy as np

        base, new = self.counts
        usual = np.median(base) == np.median(new)
        return self.base_names == self.new_names and bool(usual)

    @property
    def differs(self) -> bool:
        """Whether names, numbers or times differ."""
        import numpy as np

        is_same = all(
            np.array_equal(np.sort(base), np.sort(new))
            for base, new in (self.times_ns, self.counts)
        )
        return self.base_names != self.new_names or not is_same


@dataclass(frozen=True)
class Work:
    """All groups, and how similar the two programs are."""

    groups: tuple[Group, ...]
    t: tuple[float | None, ...]
    """Difference of each group, in standard errors of the steps."""
    stands_out: tuple[bool, ...]
    has_python_on_one_side: bool
    """Whether only one side records Python functions, so that host work is not comparable."""
    similarity: float | None
    """Share of launches, operators and their names that both sides have in common; None if there
    are neither."""

    @cached_property
    def n_differences(self) -> int:
        """Return the number of groups that differ in any way."""
        return sum(group.differs for group in self.groups)

    @property
    def is_related(self) -> bool:
        """Whether enough is in common to compare the parts of both programs."""
        return self.similarity is not None and self.similarity >= _LEAST_SIMILAR

    @property
    def is_same(self) -> bool:
        """Whether both sides do the same work equally often, regardless of its time.

        Runtime API calls only need to be the same: at the ends of steps, their number varies.
        """
        return all(
            group.relation in {"same", "moved"}
            and (
                group.has_same_counts
                or (group.kind == "runtime" and group.counts[0].any() and group.counts[1].any())
            )
            for group in self.groups
        )


def work_of(base: Side, new: Side) -> Work:
    """Match all work of both sides, and compare its changes with the noise of the steps."""
    collected = _Collected(base, new)
    similar = [
        collected.sequences(activities, _DEVICE_KINDS),
        collected.sequences(operators, ("operator",)),
    ]
    collected.names()
    groups = collected.groups()
    t = _standard_errors(groups)
    n_steps = base.n_steps + new.n_steps
    hosts_differ = has_python(base) != has_python(new)
    most_ns = max(most_of_python_ns(side) for side in (base, new)) if hosts_differ else 0.0
    stands_out = [
        not (hosts_differ and _is_by_python(group, most_ns))
        and (
            _is_structural(group)
            or (each is not None and is_beyond_noise(each, n_steps, len(groups)))
        )
        for group, each in zip(groups, t, strict=True)
    ]
    return Work(
        groups=tuple(groups),
        t=tuple(t),
        stands_out=tuple(stands_out),
        has_python_on_one_side=hosts_differ,
        similarity=max((share for share in similar if share is not None), default=None),
    )


def _is_by_python(group: Group, most_ns: float) -> bool:
    """Whether recording Python functions on one side may have made a change of host work.

    It changes what recording operators and calls costs in an unknown way.
    """
    is_between = group.kind in {"host_gap", "data_loading"}
    return group.kind in _HOST_KINDS and not (is_between and group.change_ns > most_ns)


def _is_structural(group: Group) -> bool:
    """Whether a group is on one side only, or more frequent there, which noise does not explain."""
    base, new = group.counts
    return bool(base.min() > new.max() or new.min() > base.max())


def _standard_errors(groups: list[Group]) -> list[float | None]:
    """Compare groups with others of their kind, since host and device have different noise."""
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
    """The rows of work of both sides, each with the number of its group."""

    def __init__(self, base: Side, new: Side) -> None:
        self.sides = (base, new)
        self.numbers: dict[tuple[str, Relation, Names, Names], int] = {}
        self.rows: tuple[list[pl.DataFrame], list[pl.DataFrame]] = ([], [])

    def sequences(
        self, of: Callable[[Side], list[Sequence]], kinds: tuple[str, ...]
    ) -> float | None:
        """Match the sequences of the median steps; return the share that is the same."""
        works = [_work_by_event(side, kinds) for side in self.sides]
        steps = [of(side) for side in self.sides]
        usual = [each[side.median_row] for each, side in zip(steps, self.sides, strict=True)]
        matches = match_sequences(usual[0], usual[1])
        names = [_names(side, step.events) for side, step in zip(self.sides, usual, strict=True)]
        told = [_told(match, names) for match in matches]
        for number, side in enumerate(self.sides):
            place = _codes_of_places(matches, number, len(usual[number].events))
            rows, alone = _coded(side, steps[number], usual[number], place, len(told))
            rows = rows.join(works[number], on="event", how="inner", maintain_order="left")
            self._add(number, rows, [*told, *alone])
        return _similarity(matches, usual)

    def names(self) -> None:
        """Add host work outside operators, by name, and handoffs between threads."""
        import polars as pl

        is_folded = has_python(self.sides[0]) != has_python(self.sides[1])
        rows = tuple(_named_rows(side, is_folded=is_folded) for side in self.sides)
        aliases = aliases_of(self.sides, (_events_by_name(rows[0]), _events_by_name(rows[1])))
        for number, side in enumerate(self.sides):
            each = rows[number].select("kind", "plain").unique(maintain_order=True)
            names: list[Told] = [
                ("same", *aliases[key]) if (key := (kind, name)) in aliases else _alone(name)
                for kind, name in each.cast(pl.String).iter_rows()
            ]
            each = each.with_columns(code=pl.int_range(pl.len()))
            found = rows[number].join(
                each, on=["kind", "plain"], how="left", nulls_equal=True, maintain_order="left"
            )
            self._add(number, found, names)
            self._add(number, _handoffs(side), [_alone(HANDOFF)])

    def groups(self) -> list[Group]:
        """Return all groups in a deterministic order."""
        base, new = (
            _summed(rows, len(self.numbers), side)
            for rows, side in zip(self.rows, self.sides, strict=True)
        )
        longest = [
            _longest_first(side, rows) for side, rows in zip(self.sides, self.rows, strict=True)
        ]
        found = [
            Group(
                kind,
                relation,
                longest[0](number, base_names),
                longest[1](number, new_names),
                _at_one_cost(kind, number, base, new),
                (base.counts[number], new.counts[number]),
                (base.events[number], new.events[number]),
            )
            for (kind, relation, base_names, new_names), number in self.numbers.items()
        ]

        def order(group: Group) -> tuple[object, ...]:
            names = (group.base_names, group.new_names)
            return (group.kind, group.relation, *(tuple(map(str, side)) for side in names))

        return sorted(found, key=order)

    def _add(self, number: int, rows: pl.DataFrame, told: list[Told]) -> None:
        """Add rows of one side; their code is an index into `told`."""
        import polars as pl

        pairs = rows.select("kind", "code").unique(maintain_order=True)
        keys = [(kind, *told[code]) for kind, code in pairs.cast({"kind": pl.String}).iter_rows()]
        numbers = [self.numbers.setdefault(key, len(self.numbers)) for key in keys]
        pairs = pairs.with_columns(group=pl.Series(numbers, dtype=pl.Int64))
        found = rows.join(pairs, on=["kind", "code"], how="left", maintain_order="left")
        self.rows[number].append(found.select("event", "row", "group", "work_ns"))


@dataclass(frozen=True)
class _Sums:
    """Time and count of each group in each step of a side, and its events."""

    times_ns: NDArray[np.float64]
    recorded_ns: NDArray[np.float64] | None
    """The self time as recorded, if `times_ns` exclude the profiler's overhead."""
    counts: NDArray[np.int64]
    events: list[NDArray[np.uint32]]


def _at_one_cost(
    kind: str, number: int, base: _Sums, new: _Sums
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the times of a group, with the same share of recording overhead removed on both sides.

    The overhead of one event is estimated for each side by itself. Of operators that take little
    longer than that, a small difference between both estimates would leave a multiple of the time
    on one side. If both sides call operators equally often, their times differ as they do in the
    recordings, and sum up to what remains of both.
    """
    import numpy as np

    times_ns = base.times_ns[number], new.times_ns[number]
    is_as_often = np.median(base.counts[number]) == np.median(new.counts[number])
    if kind != "operator" or base.recorded_ns is None or new.recorded_ns is None or not is_as_often:
        return times_ns
    recorded_ns = base.recorded_ns[number], new.recorded_ns[number]
    whole_ns = sum(float(times.mean()) for times in recorded_ns)
    left = sum(float(times.mean()) for times in times_ns) / max(whole_ns, 1.0)
    return recorded_ns[0] * left, recorded_ns[1] * left


def _summed(rows: list[pl.DataFrame], n_groups: int, side: Side) -> _Sums:
    import numpy as np
    import polars as pl

    n_steps = side.n_steps
    found = pl.concat(rows)
    groups = found["group"].to_numpy()
    cells = groups * n_steps + found["row"].to_numpy()
    shape = (n_groups, n_steps)

    def sums(each_ns: NDArray[np.int64]) -> NDArray[np.float64]:
        return (
            np.bincount(cells, each_ns, n_groups * n_steps)
            .astype(np.float64, copy=False)
            .reshape(shape)
        )

    selves = side.recorded_self_ns
    recorded_ns = None if selves is None else sums(selves[found["event"].fill_null(-1).to_numpy()])
    counts = np.bincount(cells, minlength=n_groups * n_steps)
    known = found.select("group", "event").drop_nulls().sort("group", maintain_order=True)
    borders = np.searchsorted(known["group"].to_numpy(), np.arange(1, n_groups))
    events = np.split(known["event"].to_numpy(), borders)
    times_ns = sums(found["work_ns"].to_numpy())
    return _Sums(times_ns, recorded_ns, counts.reshape(shape), events)


def _longest_first(side: Side, rows: list[pl.DataFrame]) -> Callable[[int, Names], Names]:
    """Return a function that orders the names of a group by their time, longest first."""
    import polars as pl

    known = pl.concat(rows).drop_nulls("event")
    name = side.events["name"].gather(known["event"]).cast(pl.String)
    sums = known.group_by("group", name=name).agg(pl.col("work_ns").sum())
    times_ns = {(group, name): time_ns for group, name, time_ns in sums.iter_rows()}

    def ordered(number: int, names: Names) -> Names:
        return tuple(
            sorted(names, key=lambda name: (-(times_ns.get((number, name)) or 0), str(name)))
        )

    return ordered


def _codes_of_places(matches: Iterable[Match], number: int, n_places: int) -> NDArray[np.int64]:
    """Return the index of the match for each position of a side's median step; -1 without one."""
    import numpy as np

    codes = np.full(n_places, -1)
    for code, match in enumerate(matches):
        codes[list(match.new if number else match.base)] = code
    return codes


def _coded(
    side: Side, steps: list[Sequence], usual: Sequence, codes: NDArray[np.int64], first: int
) -> tuple[pl.DataFrame, list[Told]]:
    """Return the events of all steps with the code of their position in the median step.

    An event without a position gets a code for its name, from `first` on. The meaning of these
    codes is returned too.
    """
    import numpy as np
    import polars as pl

    of_place = np.append(codes, -1)  # -1: no position
    found = pl.DataFrame(
        {
            "event": np.concatenate([step.events for step in steps]).astype(np.uint32),
            "row": np.repeat(
                np.arange(len(steps), dtype=np.uint32), [len(step.events) for step in steps]
            ),
            "code": np.concatenate([of_place[places_of(step, usual)] for step in steps]),
        }
    )
    lost = found.filter(pl.col("code") < 0).select("event")
    lost = lost.with_columns(name=side.events["name"].gather(lost["event"]))
    named, alone = _coded_by_name(lost, first, pl.col("name").cast(pl.String))
    by_name = pl.col("code").replace(-1, None)
    found = found.join(named, on="event", how="left", maintain_order="left", suffix="_of_name")
    return found.select("event", "row", code=by_name.fill_null(pl.col("code_of_name"))), alone


def _named_rows(side: Side, *, is_folded: bool) -> pl.DataFrame:
    """Return the rows of host work outside operators with the name of each, or null for loading.

    If Python functions are folded, their time is that of the event around them.
    """
    import polars as pl

    text = pl.col("name").cast(pl.String)
    plain = text.str.replace(*STEP_NAME).str.replace_all(ADDRESS, "")
    rows = side.work.filter(one_of("kind", (*_BY_NAME, "data_loading")))
    if is_folded:
        rows = rows.with_columns(event=_outside_python(side)[rows["event"]])
    rows = rows.with_columns(name=side.events["name"].gather(rows["event"]))
    names = rows.select("name").unique(maintain_order=True).with_columns(plain=plain)
    rows = rows.join(names, on="name", how="left", nulls_equal=True, maintain_order="left")
    is_loading = pl.col("kind") == "data_loading"
    return rows.with_columns(plain=pl.when(~is_loading).then("plain"))


def _outside_python(side: Side) -> pl.Series:
    """Return for each event itself, or the event around the Python functions that it is in."""
    import numpy as np
    import polars as pl

    is_python = np.append((side.events["kind"] == "python").fill_null(value=False), False)
    parents = np.append(side.events["parent"].cast(pl.Int64).fill_null(-1), -1)
    found = np.arange(len(parents) - 1)
    while (inside := is_python[found]).any():
        found = np.where(inside, parents[found], found)
    return pl.Series("event", found).replace(-1, None).cast(pl.UInt32)


def _events_by_name(rows: pl.DataFrame) -> dict[tuple[str, str | None], list[int]]:
    """Return the events of each kind and name."""
    import polars as pl

    found = rows.drop_nulls("event").group_by(pl.col("kind").cast(pl.String), "plain").agg("event")
    return {(kind, name): events for kind, name, events in found.iter_rows()}


def _handoffs(side: Side) -> pl.DataFrame:
    """Return the time in each step from the last work of one thread to the first of the next.

    Only paths through all steps show it in each of them.
    """
    import polars as pl

    segments = side.path.segments if side.is_contiguous else side.path.segments.clear()
    found = segments.filter(one_of("kind", (HANDOVER,)))
    rows = side.rows_at(found["start_ns"].to_numpy())
    found = found.with_columns(row=pl.Series(rows, dtype=pl.Int64)).filter(pl.col("row") >= 0)
    return found.select(
        "kind",
        pl.col("row").cast(pl.UInt32),
        event=pl.lit(None, pl.UInt32),
        work_ns="duration_ns",
        code=pl.lit(0, pl.Int64),
    )


def _coded_by_name(
    rows: pl.DataFrame, first: int, plain: pl.Expr
) -> tuple[pl.DataFrame, list[Told]]:
    """Return codes for names from `first` on, and the `plain` name for each code."""
    import polars as pl

    each = rows.select("name").unique(maintain_order=True)
    alone = [_alone(name) for name in each.select(plain).to_series()]
    each = each.with_columns(code=pl.int_range(first, first + pl.len()))
    found = rows.join(each, on="name", how="left", nulls_equal=True, maintain_order="left")
    return found.drop("name"), alone


def _alone(name: str | None) -> Told:
    return "same", (name,), (name,)


def _told(match: Match, names: list[list[str | None]]) -> Told:
    """Describe a match by the names of its work, each once and in the order of their letters.

    Work that kept its names is the same, at any place and any number of times.
    """
    base, new = (
        tuple(sorted({names[number][it] for it in places}, key=str))
        for number, places in enumerate((match.base, match.new))
    )
    is_same = base == new and match.relation != "reshaped"
    return "same" if is_same else match.relation, base, new


def _names(side: Side, events: NDArray[np.int64]) -> list[str | None]:
    return list(side.events["name"].gather(events).cast(str))


def _work_by_event(side: Side, kinds: tuple[str, ...]) -> pl.DataFrame:
    """Return the kind and time of each event's work; of several, the last."""
    import polars as pl

    rows = side.work.select("event", "kind", "work_ns").filter(one_of("kind", kinds))
    return rows.filter(pl.col("event").ne_missing(pl.col("event").shift(-1)))


def _similarity(matches: Iterable[Match], usual: list[Sequence]) -> float | None:
    """Return the share of both sides that has a counterpart with the same stack or name.

    None if both are empty.
    """
    n_all = len(usual[0].events) + len(usual[1].events)
    n_close = sum(match.relation in _CLOSE and _is_close(match, usual) for match in matches)
    return 2 * n_close / n_all if n_all else None


def _is_close(match: Match, usual: list[Sequence]) -> bool:
    """Whether a pair has a key in common, beyond its position."""
    [old], [now] = match.base, match.new
    return any(
        usual[0].keys[round_][old] == usual[1].keys[round_][now]
        for round_ in range(len(usual[0].keys) - 1)
    )
