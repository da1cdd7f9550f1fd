"""Writes the traces of several simulated ranks, with clocks that disagree."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from oracles.simulator.ranks import Event, Job


@dataclass(frozen=True, slots=True)
class RankClock:
    """What the clock of a rank shows: ahead of the true time by this, and more with time."""

    offset_ns: int = 0
    drift: float = 0.0

    def shown_ns(self, time_ns: int) -> int:
        """Return what the clock shows at a time."""
        return time_ns + self.offset_ns + round(self.drift * time_ns)


def write_ranks(
    job: Job,
    times: Sequence[int],
    clocks: Sequence[RankClock],
    folder: Path,
    *,
    keep: Sequence[Any] | None = None,
    numbered: bool = True,
    hosts: bool = True,
) -> dict[tuple[int, int], Event]:
    """Write one file a rank; give what stands at each `(rank, row)`.

    Parameters
    ----------
    keep
        For each event whether the profiler wrote it; by default all.
    numbered
        Whether calls have sequence numbers.
    """
    rows: dict[tuple[int, int], Event] = {}
    of_rank: list[list[dict[str, Any]]] = [[] for _ in range(job.n_ranks)]
    for place, event in enumerate(job.events):
        if keep is not None and not keep[place]:
            continue
        rows[event.rank, len(of_rank[event.rank])] = event
        of_rank[event.rank].append(_record(event, times, clocks[event.rank], numbered=numbered))
    for rank, records in enumerate(of_rank):
        document = {
            "schemaVersion": 1,
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": job.n_ranks},
            "traceEvents": records,
        }
        if hosts:
            document["host_name"] = f"host{rank}"
        folder.joinpath(f"rank{rank}.json").write_text(json.dumps(document), encoding="utf-8")
    return rows


def _record(
    event: Event, times: Sequence[int], clock: RankClock, *, numbered: bool
) -> dict[str, Any]:
    start, end = (clock.shown_ns(times[node]) for node in (event.start, event.end))
    args = event.args if numbered else {k: v for k, v in event.args.items() if k != "Seq"}
    is_kernel = event.category == "kernel"
    return {
        "ph": "X",
        "cat": event.category,
        "name": event.name,
        "pid": event.args["device"] if is_kernel else 1_000 + event.rank,
        "tid": event.track if is_kernel else 1_000 + event.rank + event.track - 100,
        "ts": start / 1_000,
        "dur": (end - start) / 1_000,
        "args": args,
    }
