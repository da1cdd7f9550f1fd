"""Judges an answer about several ranks by what is true of the run."""

from __future__ import annotations

import random
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .ranks import RankClock, write_ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from longpole.jobs.trace_set import TraceSet

    from .ranks import Event
    from .ranks_programs import RankRun, Straggler


_NEAR_NS: Final = 5_000
_WORTH: Final = 0.02


@dataclass(frozen=True, slots=True)
class Judged:
    """What was right about an answer."""

    stragglers: tuple[tuple[float, str], ...]
    """What each is worth, as a share of the run, and whether its `cause` or `rank` is named."""
    n_false: int
    """Remedies for a rank that is not a straggler."""
    n_remedies: int
    path_share: float
    """The part of the path's time that is really critical, but for 5 us."""
    n_clocks: int
    n_clocks_within: int
    what_if_errors: tuple[float, ...]

    @property
    def is_quiet(self) -> bool:
        """Whether no straggler is worth anything."""
        return all(worth < _WORTH / 2 for worth, _ in self.stragglers)

    @property
    def is_right(self) -> bool:
        """Whether all was as it should be."""
        named = all(said == "cause" for worth, said in self.stragglers if worth >= _WORTH)
        return named and not self.n_false and self.path_share >= 1 - _WORTH


def judge(
    run: RankRun,
    times: Sequence[int],
    rows: Mapping[tuple[int, int], Event],
    ranks: TraceSet,
    together: RankRun | None = None,
) -> Judged:
    """Hold an answer against the run, or against one of which all recordings began together."""
    remedies = ranks.late_ranks()
    true = together or run
    true_ns = true.job.makespan_ns()
    stragglers = []
    errors = []
    for straggler in run.stragglers:
        changed_ns = true.without_ns(straggler)
        worth = (true_ns - changed_ns) / true_ns
        of_rank = [remedy for remedy in remedies if remedy.rank == straggler.rank]
        named = [remedy for remedy in of_rank if _says(remedy.cause, remedy.name, straggler)]
        stragglers.append((worth, "cause" if named else "rank" if of_rank else ""))
        if named and worth >= _WORTH:
            errors.append(abs(named[0].changed_ns - changed_ns) / changed_ns)
    late = {straggler.rank for straggler in run.stragglers}
    within = _clocks_within(run, times, ranks)
    return Judged(
        tuple(stragglers),
        sum(remedy.rank not in late for remedy in remedies),
        len(remedies),
        _path_share(run, times, rows, ranks),
        len(within),
        sum(within),
        tuple(errors),
    )


def _says(cause: str, name: str | None, straggler: Straggler) -> bool:
    names = {"host functions": "index_put", "slow kernel": "gemm_128x64"}
    if cause != straggler.cause:
        return False
    return names.get(cause, "") in (name or "")


def _path_share(
    run: RankRun,
    times: Sequence[int],
    rows: Mapping[tuple[int, int], Event],
    ranks: TraceSet,
) -> float:
    """Return the part of the path's time whose events are critical; idle follows its neighbour."""
    slack = run.job.slack_ns(list(times))
    right = total = 0
    is_right = True
    for rank, event, length in ranks.path().select("rank", "event", "duration_ns").iter_rows():
        known = None if event is None else rows[rank, event]
        if known is not None and known.category != "user_annotation":
            is_right = min(slack[known.start], slack[known.end]) <= _NEAR_NS
        right += length * is_right
        total += length
    return right / total if total else 1.0


def _clocks_within(run: RankRun, times: Sequence[int], ranks: TraceSet) -> list[bool]:
    """Return for each rank whether its clock is right within the bound during its recording."""
    zero = run.clocks[0]
    found = []
    for place, (clock, row) in enumerate(
        zip(run.clocks, ranks.clocks.iter_rows(named=True), strict=True)
    ):
        own = [event for event in run.job.events if event.rank == place]
        first = min(times[event.start] for event in own)
        last = max(times[event.end] for event in own)
        worst = max(
            abs(ranks.solution.common_ns(place, clock.shown_ns(at)) - zero.shown_ns(at))
            for at in (first, (first + last) // 2, last)
        )
        found.append(worst <= row["edge_bound_ns"])
    return found


# Judges which members were matched, where calls are not numbered and some are lost.


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of members of one call: how many there are, and how many were found."""

    n_true: int
    n_right: int
    n_wrong: int
    is_ambiguous: bool
    """Whether the answer says that several alignments fit."""


def matched_pairs(
    run: RankRun,
    read: Callable[[Path], TraceSet],
    *,
    seed: int,
    largest_offset_ns: int,
    lost: float,
) -> Pairs:
    """Write a run without numbers, a share of its members lost, and judge what is matched."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    clocks = [
        RankClock(round(dice.uniform(-0.5, 0.5) * largest_offset_ns))
        for _ in range(run.job.n_ranks)
    ]
    keep = [not (it.name.startswith("nccl") and dice.random() < lost) for it in run.job.events]
    key_of = {
        id(event): key for key, call in run.job.calls.items() for event in call.members.values()
    }
    with tempfile.TemporaryDirectory() as folder:
        rows = write_ranks(
            run.job, run.job.times_ns(), clocks, Path(folder), keep=keep, numbered=False
        )
        ranks = read(Path(folder))
    keys = {at: key_of[id(event)] for at, event in rows.items() if id(event) in key_of}
    true = _same(keys.items())
    found: dict[int, list[Hashable]] = defaultdict(list)
    for call, rank, event in ranks.members.select("call", "rank", "event").iter_rows():
        found[call].append(keys[rank, event])
    n_right = sum(_equal(members) for members in found.values())
    n_pairs = sum(len(members) * (len(members) - 1) // 2 for members in found.values())
    is_ambiguous = any(it.kind == "ambiguous alignment" for it in ranks.findings)
    return Pairs(true, n_right, n_pairs - n_right, is_ambiguous)


def _same(rows: Iterable[tuple[Hashable, Hashable]]) -> int:
    counts: dict[Hashable, int] = defaultdict(int)
    for _, key in rows:
        counts[key] += 1
    return sum(count * (count - 1) // 2 for count in counts.values())


def _equal(members: list[Hashable]) -> int:
    return _same((None, member) for member in members)
