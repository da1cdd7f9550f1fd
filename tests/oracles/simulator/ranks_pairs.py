"""Judges which members were matched, where calls are not numbered and some are lost."""

from __future__ import annotations

import random
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from oracles.simulator.ranks_kineto import RankClock, write_ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from longpole.traces.trace_set import TraceSet
    from oracles.simulator.ranks_programs import RankRun


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
