"""Why a rank is late on the recorded path across ranks, where recordings started apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from longpole.traces.late_ranks import RankRemedy
from longpole.wording import count, duration, share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.traces.trace_set import TraceSet

__all__ = ["late_on_path"]

_PAIR: Final = 2
_KERNELS: Final = ("kernel", "kernel_delay")
_COPIES: Final = ("copy", "kernel_delay")
_HOST: Final = (
    *("operator", "runtime", "host_gap", "data_loading", "launch"),
    *("sync_return", "queue_full", "handover"),
)
_MOSTLY_KERNELS: Final = 0.5
_LEAST_ON_PATH: Final = 0.25
"""Minimum share of the path before late calls for a cause with this kind of time."""


def late_on_path(
    joined: TraceSet, path: pl.DataFrame, step: int | None
) -> list[tuple[RankRemedy | None, str]]:
    """Return each late rank with its sentence; no remedy if the cause is unknown.

    Gains with start skew are those of a run whose recordings begin together. A host that ran
    ahead during the skew is slow in that run, though it delays no recorded call. The cause is
    therefore checked against the recorded path.
    """
    remedies = joined.late_ranks()
    if not joined.has_start_skew:
        return [(remedy, remedy.sentence) for remedy in remedies]
    late: list[tuple[RankRemedy | None, str]] = []
    for rank in dict.fromkeys(remedy.rank for remedy in remedies):
        of_rank = [remedy for remedy in remedies if remedy.rank == rank]
        recorded = _recorded_cause(joined, path, step, of_rank)
        late += [recorded] if recorded else [(it, it.sentence) for it in of_rank]
    return late


def _recorded_cause(
    joined: TraceSet, path: pl.DataFrame, step: int | None, of_rank: Sequence[RankRemedy]
) -> tuple[RankRemedy | None, str] | None:
    """Return why a rank is late on the recorded path, if that is not what `of_rank` say."""
    rank = of_rank[0].rank
    is_late = pl.col("cause").is_in(["late arrival", "mixed"]) & (pl.col("last") == rank)
    late = joined.calls.filter(is_late)["call"]
    if late.is_empty() or all(it.time_class == "kernels" for it in of_rank):
        return None
    before = _before(joined, path, step, late, rank)
    path_ns = sum(before.values())
    kernels_ns = _sum_of(_KERNELS, before)
    on_path = {"kernels": kernels_ns, "copies": _sum_of(_COPIES, before)}
    host_ns = _sum_of(_HOST, before)
    least_ns = _LEAST_ON_PATH * path_ns
    if path_ns and all(on_path.get(it.time_class, host_ns) >= least_ns for it in of_rank):
        return None
    waits = joined.members.filter(pl.col("call").is_in(late.implode()))
    waits = waits.group_by("rank").agg(pl.col("wait_ns").sum()).sort("wait_ns", "rank")
    other, wait_ns = waits.row(-1)
    n_late = count(late.len(), "call")
    waited = f"Rank {other} waits {duration(wait_ns)} for rank {rank} in {n_late}"
    is_told = path_ns > 0 and kernels_ns >= _MOSTLY_KERNELS * path_ns
    kernels = _kernels_before(joined, late, (rank, other)) if is_told else None
    if kernels is None:
        return None, f"{waited}; the path before these calls does not show why."
    (n_calls, n_own, own_ns), (_, n_other, other_ns) = kernels
    run_ns = joined.duration_ns
    cause = "more work" if n_own > n_other else "longer kernels"
    times = (own_ns, other_ns, run_ns, run_ns - wait_ns)
    remedy = RankRemedy(rank, cause, "kernels", None, *times, f"rank {other}")
    whom = "the other rank" if len(joined) == _PAIR else "the others"
    told = (
        f"Rank {rank} makes {whom} wait ({cause}). Kernels are {share(kernels_ns / path_ns)} "
        f"of its path before its late calls. From one call to the next, it runs "
        f"{_each(n_own, own_ns, n_calls)}; rank {other} runs "
        f"{_each(n_other, other_ns, n_calls)}. {waited}, and a fix gains about that at most."
    )
    host = [
        f" Its main thread takes longer too ({duration(it.own_ns)}; {it.compared_with} "
        f"{duration(it.median_ns)}), but is {share(host_ns / path_ns)} of that path. Without "
        "start skew, it could be the cause."
        for it in of_rank
        if it.time_class == "host"
    ]
    return remedy, told + "".join(host)


def _before(
    joined: TraceSet, path: pl.DataFrame, step: int | None, late: pl.Series, rank: int
) -> dict[str, int]:
    """Sum the kinds of time on the recorded path of a rank before the given calls."""
    is_whole = step is None and not path.is_empty()
    whole = path if is_whole else joined.path()
    before = whole.with_columns(next_call=pl.col("call").backward_fill()).filter(
        pl.col("call").is_null()
        & (pl.col("rank") == rank)
        & (pl.col("kind") != "before_first_event")
        & pl.col("next_call").is_in(late.implode())
    )
    sums = before.group_by(pl.col("kind").cast(pl.String)).agg(pl.col("duration_ns").sum())
    return dict(sums.iter_rows())


def _kernels_before(
    joined: TraceSet, late: pl.Series, ranks_compared: tuple[int, int]
) -> list[tuple[int, int, int]] | None:
    """Count and sum the kernels of two ranks from the start of the call before each late one.

    None if the first rank does not run kernels for longer than the second.
    """
    members = joined.members
    common = [set(members.filter(rank=rank)["call"]) for rank in ranks_compared]
    is_common = pl.col("call").is_in(common[0] & common[1])
    found: list[tuple[int, int, int]] = []
    for rank in ranks_compared:
        trace = joined.trace(rank)
        events = trace.events.select("event", "start_ns", "duration_ns")
        calls = members.filter(is_common, pl.col("rank") == rank).join(events, on="event")
        calls = calls.sort("start_ns").with_columns(before_ns=pl.col("start_ns").shift())
        calls = calls.filter(pl.col("call").is_in(late.implode())).drop_nulls("before_ns")
        work = trace.launches.filter(pl.col("work_class").cast(pl.String) == "compute")
        kernels = work.select("event").join(events, on="event").sort("start_ns")
        bounds = [
            kernels["start_ns"].search_sorted(calls[name]) for name in ("before_ns", "start_ns")
        ]
        parts = [
            kernels["duration_ns"].slice(first, end - first)
            for first, end in zip(*bounds, strict=True)
        ]
        n_kernels = sum(part.len() for part in parts)
        found.append((calls.height, n_kernels, sum(int(part.sum()) for part in parts)))
    (n_calls, _, own_ns), (_, _, other_ns) = found
    return found if n_calls and own_ns > other_ns else None


def _sum_of(kinds: Sequence[str], durations_ns: dict[str, int]) -> int:
    return sum(durations_ns.get(kind, 0) for kind in kinds)


def _each(n_kernels: int, total_ns: int, n_calls: int) -> str:
    """Describe the mean kernels from one call to the next."""
    return f"{count(round(n_kernels / n_calls), 'kernel')} in {duration(total_ns // n_calls)}"
