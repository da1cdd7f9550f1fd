"""The runs of one side of a comparison, each with the traces of its ranks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Final, Literal

from longpole.diffs.sides import one_of, side_of
from longpole.jobs.trace_set import TraceSet
from longpole.trace.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.diffs.sides import Side
    from longpole.engine.question import Question
    from longpole.files.damage import Damage

# With fewer common steps there is no usable sample.
_FEWEST_STEPS: Final = 4


@dataclass(frozen=True)
class Runs:
    """The runs of one side, each with the traces of its ranks."""

    runs: tuple[tuple[Side, ...], ...]

    @property
    def traces(self) -> list[Trace]:
        """Return the traces of all runs."""
        return [side.trace for run in self.runs for side in run]

    @property
    def damage(self) -> tuple[Damage, ...]:
        """Return the damage of its traces."""
        return tuple(trace.damage for trace in self.traces if trace.damage)

    @property
    def means_ns(self) -> list[float]:
        """Return the mean step of each run."""
        return [fmean(run.values()) for run in map(lengths_ns, self.runs)]

    @property
    def recorded_means_ns(self) -> list[float]:
        """Return the mean step of each run as recorded."""
        return [fmean(run.values()) for run in map(recorded_lengths_ns, self.runs)]

    @property
    def timed_ns(self) -> tuple[int, ...]:
        """Return the steps of the only trace that were timed without the profiler."""
        traces = [side for run in self.runs for side in run]
        return traces[0].timed_ns if len(traces) == 1 else ()

    @property
    def range_ns(self) -> tuple[float, float] | None:
        """Return the range of the mean step of the first run: that of its slowest rank.

        None if the times without the profiler are certain.
        """
        ranges = [side.range_ns or (side.mean_ns, side.mean_ns) for side in self.runs[0]]
        if not any(side.range_ns for side in self.runs[0]):
            return None
        least, most = zip(*ranges, strict=True)
        return max(least), max(most)

    @property
    def range_source(self) -> Literal["estimated", "measured"] | None:
        """Return where that range comes from: an estimate if that of any rank is one."""
        found = {side.range_source for side in self.runs[0]} - {None}
        return None if not found else "measured" if found == {"measured"} else "estimated"

    @property
    def usual(self) -> tuple[Side, ...]:
        """Return the run with the median mean step."""
        means = self.means_ns
        order = sorted(range(len(means)), key=lambda run: (means[run], run))
        return self.runs[order[(len(order) - 1) // 2]]


def runs_of(given: Sequence[Trace], question: Question) -> Runs:
    """Sort traces into runs: the first of every rank, then the second of every rank, and so on."""
    if not given:
        message = "each side needs a trace"
        raise ValueError(message)
    by_rank: dict[int | None, list[Side]] = {}
    for trace in given:
        by_rank.setdefault(trace.rank, []).append(side_of(trace, question))
    if len({len(each) for each in by_rank.values()}) > 1:
        message = "every rank needs a trace of every run"
        raise ValueError(message)
    ranks = sorted(by_rank, key=lambda rank: -1 if rank is None else rank)
    return Runs(tuple(zip(*(by_rank[rank] for rank in ranks), strict=True)))


def whole_ranks(sides: list[list[Trace]]) -> tuple[list[list[Trace]], tuple[int, ...]]:
    """Leave out the ranks of which a trace is severely damaged, if others are whole."""
    damaged = {
        trace.rank for side in sides for trace in side if trace.damage and trace.damage.is_grave
    }
    kept = [[trace for trace in side if trace.rank not in damaged] for side in sides]
    ranks = sorted(rank for rank in damaged if rank is not None)
    if len(ranks) < len(damaged) or not all(kept):
        return sides, ()
    return kept, tuple(ranks)


def traces_of(side: Trace | TraceSet | Sequence[Trace | TraceSet]) -> list[Trace]:
    """Return the traces of one side; a run of ranks is read again."""
    found: list[Trace] = []
    for part in [side] if isinstance(side, Trace | TraceSet) else side:
        if isinstance(part, TraceSet):
            found += [part.trace(rank) for rank in part.rank_numbers]
        else:
            found.append(part)
    return found


def shaped_alike(sides: list[Runs]) -> list[Runs]:
    """Compare no shapes if a side did not record them."""
    if len({has_shapes(trace) for side in sides for trace in side.traces}) == 1:
        return sides
    return [
        Runs(tuple(tuple(replace(it, has_shapes=False) for it in run) for run in side.runs))
        for side in sides
    ]


def has_shapes(trace: Trace) -> bool:
    """Whether the shapes of tensors are recorded, and were read."""
    return any(
        (args := trace.args(category, ["Input Dims"])) is not None and args.width > 1
        for category in trace.categories
    )


def counted_alike(sides: list[Runs]) -> list[Runs]:
    """Keep the step numbers that all ranks of both sides have, if that keeps most of them.

    The first step of a recording that has a step before it is often longer than the others: it must
    not count on one side alone.
    """
    if any(len(runs.runs) != 1 for runs in sides):
        return sides
    each = [
        [set(side.steps["step"]) if side.unit == "step" else set() for side in runs.runs[0]]
        for runs in sides
    ]
    numbers = [set.intersection(*of_ranks) for of_ranks in each]
    common = numbers[0] & numbers[1]
    fewest = min(map(len, numbers))
    are_equal = all(it == common for of_ranks in each for it in of_ranks)
    if are_equal or len(common) < _FEWEST_STEPS or 2 * len(common) < fewest:
        return sides
    return [Runs((tuple(side.with_steps(common) for side in runs.runs[0]),)) for runs in sides]


def details(
    base: Sequence[Side], new: Sequence[Side], late: int | None = None
) -> tuple[Side, Side]:
    """Choose the late rank, or that whose steps, without its communication, changed most.

    All ranks wait in a collective for the last one, so their steps change alike: the rank that
    made them wait is the one that itself does more or less than before.
    """
    others = {side.trace.rank: side for side in new}
    pairs = [(side, others[side.trace.rank]) for side in base if side.trace.rank in others]
    if not pairs:
        return base[0], new[0]
    if len(pairs) == 1:
        return pairs[0]
    of_late = [] if late is None else [pair for pair in pairs if pair[0].trace.rank == late]
    if of_late:
        return of_late[0]
    return max(pairs, key=lambda pair: abs(_apart_ns(pair[1]) - _apart_ns(pair[0])))


def _apart_ns(side: Side) -> float:
    """Return the mean step without the time in which the rank communicates."""
    waits_ns = side.work.filter(one_of("kind", ("communication",)))["work_ns"].sum()
    return side.mean_ns - float(waits_ns) / side.n_steps


def lengths_ns(run: Sequence[Side]) -> dict[int, float]:
    """Return the length of each step of a run."""
    return joint_lengths(
        [dict(zip(side.steps["step"], map(float, side.lengths_ns), strict=True)) for side in run]
    )


def recorded_lengths_ns(run: Sequence[Side]) -> dict[int, float]:
    """Return the length of each step of a run as recorded."""
    return joint_lengths(
        [
            dict(zip(side.steps["step"], map(float, side.recorded_lengths_ns), strict=True))
            for side in run
        ]
    )


def joint_lengths(of_ranks: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """Return the length of each step that all ranks have.

    Ranks that wait for each other take equally long for all steps together, but not for each one:
    what is late on one rank may be earlier in its next step. The longest rank of each step would
    count both. A step is therefore as long as that of the ranks in the mean, and the mean step as
    long as that of the slowest rank.

    Examples
    --------
    >>> joint_lengths([{1: 10.0, 2: 14.0}, {1: 14.0, 2: 10.0}])
    {1: 12.0, 2: 12.0}
    """
    common = sorted(set.intersection(*(set(each) for each in of_ranks)))
    if len(of_ranks) == 1 or not common:
        return dict(of_ranks[0])
    means = [fmean(each[step] for step in common) for each in of_ranks]
    by = max(means) / max(fmean(means), 1.0)
    return {step: by * fmean(each[step] for each in of_ranks) for step in common}
