"""Why a rank is late on the recorded path across ranks, where recordings started apart."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from longpole.jobs.late_ranks import LEAST_GAIN, RankRemedy
from longpole.words.wording import count, duration, share

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from longpole.trace.trace import Trace

_KERNELS: Final = ("kernel", "kernel_delay")
_COPIES: Final = ("copy", "kernel_delay")
_HOST: Final = (
    *("operator", "runtime", "host_gap", "data_loading", "launch"),
    *("sync_return", "queue_full", "handover"),
)
_LATE: Final = ("late arrival", "mixed")
_MOSTLY_KERNELS: Final = 0.5
_LEAST_ON_PATH: Final = 0.25
"""Minimum share of the path before late calls for a cause with this kind of time."""

_LEAST_EXPLAINED: Final = 0.5
"""Minimum length of this path for a contradiction, as a share of the wait in these calls."""


class _Joined(Protocol):
    """What is asked of the joined ranks, which are a `TraceSet`."""

    @property
    def calls(self) -> pl.DataFrame: ...
    @property
    def members(self) -> pl.DataFrame: ...
    @property
    def duration_ns(self) -> int: ...
    @property
    def pace_ns(self) -> int: ...
    def path(self) -> pl.DataFrame: ...
    def trace(self, rank: int) -> Trace: ...


def late_on_path(joined: _Joined, remedies: Sequence[RankRemedy]) -> tuple[RankRemedy, ...]:
    """Return the remedies, with causes that the recorded path does not contradict.

    Gains with start skew are those of a run whose recordings begin together. A host that ran
    ahead during the skew is slow in that run, though it delays no recorded call. If the rank is
    late in recorded calls, the cause is therefore that on the recorded path.
    """
    import polars as pl

    decided = joined.calls.filter(pl.col("cause").is_in(("transfer", *_LATE)))
    if decided.is_empty():
        return tuple(remedies)
    found: list[RankRemedy] = []
    for rank in dict.fromkeys(remedy.rank for remedy in remedies):
        of_rank = [remedy for remedy in remedies if remedy.rank == rank]
        last = decided.filter(pl.col("last") == rank)
        wait_ns = _longest_wait(joined, last["call"])[1]
        if wait_ns < LEAST_GAIN * joined.pace_ns:
            found += [replace(it, evidence=f"{_hidden(wait_ns)} {it.evidence}") for it in of_rank]
            continue
        late = last.filter(pl.col("cause").is_in(_LATE))["call"]
        recorded = None if late.is_empty() else _recorded_cause(joined, of_rank, late)
        found += [recorded] if recorded else of_rank
    return tuple(sorted(found, key=lambda remedy: (-remedy.gain_ns, remedy.rank)))


def _hidden(wait_ns: int) -> str:
    """Report that hardly any recorded call waits for a rank."""
    waited = f"wait {duration(wait_ns)}" if wait_ns else "do not wait"
    return f"Start skew hides this in the recorded calls, in which the others {waited} for it."


def _recorded_cause(
    joined: _Joined, of_rank: Sequence[RankRemedy], late: pl.Series
) -> RankRemedy | None:
    """Return why a rank is late in the given calls, if that is not what `of_rank` say."""
    rank = of_rank[0].rank
    if all(it.time_class == "kernels" for it in of_rank):
        return None
    before = _before(joined.path(), late, rank)
    path_ns = sum(before.values())
    kernels_ns = _sum_of(_KERNELS, before)
    on_path: dict[str | None, int] = {"kernels": kernels_ns, "copies": _sum_of(_COPIES, before)}
    host_ns = _sum_of(_HOST, before)
    least_ns = _LEAST_ON_PATH * path_ns
    if all(on_path.get(it.time_class, host_ns) >= least_ns for it in of_rank):
        return None
    other, wait_ns = _longest_wait(joined, late)
    if path_ns < _LEAST_EXPLAINED * wait_ns:
        return None
    n_late = count(late.len(), "call")
    waited = f"Rank {other} waits {duration(wait_ns)} for rank {rank} in {n_late}"
    run_ns = (joined.duration_ns, joined.duration_ns - wait_ns)
    compared_with = f"rank {other}"
    is_told = kernels_ns >= _MOSTLY_KERNELS * path_ns
    kernels = _kernels_before(joined, late, (rank, other)) if is_told else None
    if kernels is None:
        evidence = f"{waited}; the path before these calls does not show why."
        unknown = ("unknown cause", None, None, None, None)
        return RankRemedy(rank, *unknown, *run_ns, compared_with, evidence, "recorded")
    (n_calls, n_own, own_ns), (_, n_other, other_ns) = kernels
    cause = "more work" if n_own > n_other else "longer kernels"
    evidence = (
        f"Kernels are {share(kernels_ns / path_ns)} of the path before its late calls. From one "
        f"call to the next, it runs {_each(n_own, own_ns, n_calls)}; rank {other} runs "
        f"{_each(n_other, other_ns, n_calls)}. {waited}, and as recorded a fix gains "
        "about that at most."
    )
    host = [
        f" Its main thread takes longer too ({duration(it.own_ns or 0)}; {it.compared_with} "
        f"{duration(it.median_ns or 0)}), but is {share(host_ns / path_ns)} of that path. Without "
        "start skew, it could be the cause."
        for it in of_rank
        if it.time_class == "host"
    ]
    times_ns = (own_ns, other_ns, *run_ns)
    told = evidence + "".join(host)
    return RankRemedy(rank, cause, "kernels", None, *times_ns, compared_with, told, "recorded")


def _longest_wait(joined: _Joined, calls: pl.Series) -> tuple[int, int]:
    """Return the rank that waits longest in the given calls, and how long."""
    import polars as pl

    waits = joined.members.filter(pl.col("call").is_in(calls.implode()))
    waits = waits.group_by("rank").agg(pl.col("wait_ns").sum()).sort("wait_ns", "rank")
    return waits.row(-1) if waits.height else (0, 0)


def _before(path: pl.DataFrame, late: pl.Series, rank: int) -> dict[str, int]:
    """Sum the kinds of time on the path of a rank before the given calls."""
    import polars as pl

    before = path.with_columns(next_call=pl.col("call").backward_fill()).filter(
        pl.col("call").is_null()
        & (pl.col("rank") == rank)
        & (pl.col("kind") != "before_first_event")
        & pl.col("next_call").is_in(late.implode())
    )
    sums = before.group_by(pl.col("kind").cast(pl.String)).agg(pl.col("duration_ns").sum())
    return dict(sums.iter_rows())


def _kernels_before(
    joined: _Joined, late: pl.Series, ranks_compared: tuple[int, int]
) -> list[tuple[int, int, int]] | None:
    """Count and sum the kernels of two ranks from the start of the call before each late one.

    None if the first rank does not run kernels for longer than the second.
    """
    import polars as pl

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
