"""Several ranks as one program: which rank the others wait for, why, and the gain of a fix."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import polars as pl

from longpole.jobs.findings import RankFinding, finding_notes, listed
from longpole.jobs.late_ranks import HOST_TIME_OUTSIDE, RankRemedy
from longpole.jobs.rank_tables import (
    ARRIVALS,
    CLOCK_SHIFT,
    OPERATION,
    RANKS,
    TRANSFERS,
    call_number,
    call_words,
    groups_in_words,
    path_bars,
    what_to_do,
)
from longpole.jobs.sources import is_address
from longpole.jobs.trace_set import TraceSet
from longpole.remedies.small_messages import is_small
from longpole.report.blocks import (
    Chart,
    Column,
    Sentence,
    Table,
    Value,
    tabulated,
    without_empty_columns,
)
from longpole.report.html import html
from longpole.words.data import Data, Row, names_of
from longpole.words.wording import count, duration, escape, share, short_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from longpole.report.blocks import Block

_MOST_ROWS: Final = 8
_MOST_CALLS: Final = 5
_MOST_WAITS: Final = 4
_MOST_PATHS: Final = 3
_FEWEST_CLOCKS: Final = 2
_FEWEST_PROCESSES: Final = 2
_LACKS_RANKS: Final = (
    "so waiting cannot be separated from transfer, and the rank that comes last is unknown."
)
_ONE_STEP: Final = (
    "The calls are in fewer than two recorded steps, so it cannot be separated from a late rank; "
    "record calls in more steps."
)
_FEWEST_STEPS: Final = 2
_OF_ALL: Final = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")
"""Operations that no rank finishes before all ranks have started."""
_LACKS_WAITS: Final = (
    "Most calls run on threads of a CPU library (gloo), and the traces do not connect these to the "
    "threads that wait. The path therefore does not include them, and the cost of a late rank is "
    "unknown. The table of calls shows which rank comes last, and when."
)
_DAMAGED: Final = (
    "so the times of the ranks cannot be compared, and it is unknown whether one makes the others "
    "wait. Give the whole file."
)
_NOBODY_LATE: Final = (
    "No rank makes the others wait: with any rank like the median rank, the run would be less than "
    "2 % shorter."
)
_NEITHER_LATE: Final = (
    "Neither rank makes the other wait: with either as fast as the other, the run would be less "
    "than 2 % shorter."
)
_MOSTLY_WAITING: Final = 0.5
_SKEWED: Final = "start skew"
_RECORDED: Final = "All other times are as recorded."
_DIVIDED: Final = (
    "The work of no single rank explains these waits: in a pipeline they are part of the design, "
    "and otherwise the late rank may change from call to call."
)
_RECORD_STACKS: Final = (
    "To see what a host does outside operators, record Python stacks (with_stack=True)."
)


class RankRow(Row):
    """One rank: how long it waited, and how long others waited for it."""

    rank: int
    began_ns: int
    """Start of its first call, relative to the first rank."""
    calls: int
    decided_calls: int
    """Number of calls whose last rank is known."""
    last_at: int
    """Number of calls in which it came last."""
    wait_ns: int | None
    """Waiting time in calls that separate waiting from transfer; None if there are none, for
    example if ranks are missing.
    """
    wait_at_least_ns: int
    """Minimum waiting time in calls with missing ranks; only for ranks with a trace."""
    transfer_ns: int | None
    path_ns: int
    """Time of the rank on the critical path."""
    gain_ns: int
    """Upper bound of the gain of the run if the rank were like the median rank, without the
    profiler unless what recording cost is unknown."""
    clock_offset_ns: int


class CollectiveCall(Row):
    """One collective, on all participating ranks."""

    call: int
    group: str | None
    sequence: int | None
    step: int | None
    operation: str | None
    data_type: str | None
    bytes: int | None
    members: int
    n_absent: int
    matched_by: str
    last: int | None
    """The rank that came last."""
    late_ns: int
    wait_share: float | None
    awaited: int | None
    """The rank that the others waited for."""
    latest: int | None
    """If `last` is unknown: the last of the ranks with a trace, if clock errors do not explain
    that."""
    wait_at_least_ns: int | None
    """How long some rank waited for it at least."""
    transfer_ns: int | None
    algorithm_gb_per_s: float | None
    bus_gb_per_s: float | None
    slow_transfer: bool | None
    cause: Literal["transfer", "late arrival", "mixed", "start skew", "inconclusive"]


class RankClock(Row):
    """The clock of a rank relative to that of the first."""

    rank: int
    offset_ns: int
    base_ns: int
    drift: float
    residual_ns: int
    worst_residual_ns: int
    bound_ns: int
    edge_bound_ns: int
    calls: int
    connected: bool
    entry_ns: int


class RankSegment(Row):
    """A segment of the critical path across ranks."""

    rank: int
    start_ns: int
    end_ns: int
    kind: str
    event: int | None
    name: str | None
    certainty: str
    call: int | None


class RankStep(Row):
    """The median step of a rank, as recorded and without the profiler."""

    rank: int
    recorded_step_ns: int | None
    step_ns: int | None
    reason: str | None
    """Reason why the step without the profiler is unknown."""


class RanksData(Row):
    """Results about several ranks as one program."""

    n_ranks: int
    """Number of ranks with a trace."""
    world_size: int | None
    """Number of ranks of the program, as recorded in the traces."""
    run_ns: tuple[int, int]
    """Start and end of the run."""
    start_skew_ns: int
    late_ranks: tuple[RankRemedy, ...]
    ranks: list[RankRow]
    calls: Annotated[pl.DataFrame, CollectiveCall]
    clocks: Annotated[pl.DataFrame, RankClock]
    path: Annotated[pl.DataFrame, RankSegment]
    findings: tuple[RankFinding, ...]
    steps_without_profiler: list[RankStep]
    """The step of each rank, if the time of a step without the profiler was given."""


@dataclass(frozen=True)
class Ranks(Data):
    """The answer about several ranks."""

    set: TraceSet
    step: int | None
    path: pl.DataFrame
    """The critical path across ranks; see `TraceSet.path`."""
    top: int = _MOST_ROWS
    """Number of ranks to show."""
    steps_without_profiler: tuple[RankStep, ...] = ()
    """The step of each rank, if the time of a step without the profiler was given."""
    step_time_ns: int | None = None
    """The given time of a step without the profiler."""

    @cached_property
    def late_ranks(self) -> tuple[RankRemedy, ...]:
        """The ranks that others wait for; see `TraceSet.late_ranks`."""
        return self.set.late_ranks(self.step_time_ns)

    @property
    def is_inconclusive(self) -> bool:
        """Whether it is unknown which rank the others wait for."""
        return bool(self.unknown_because)

    @property
    def unknown_because(
        self,
    ) -> list[Literal["no_calls", "missing_ranks", "unrecorded_waits", "damaged"]]:
        """Return the reasons why the late rank is unknown; empty if it is known."""
        found = self.set
        if found.calls.is_empty():
            return ["no_calls"]
        if found.lacks_ranks and not found.tells_waits:
            return ["missing_ranks"]
        if found.lacks_waits:
            return ["unrecorded_waits"]
        return ["damaged"] if found.damaged_ranks else []

    def __data__(self) -> RanksData:
        found = self.set
        calls = self._bounded_calls.with_columns(
            _text(found.calls, "operation"), _text(found.calls, "matched_by")
        )
        return RanksData(
            n_ranks=len(found),
            world_size=found.world_size,
            run_ns=found.run_ns,
            start_skew_ns=found.start_skew_ns,
            late_ranks=self.late_ranks,
            ranks=self.records(),
            calls=calls.select(names_of(CollectiveCall)),
            clocks=found.clocks.select(names_of(RankClock)),
            path=self.path.select(names_of(RankSegment)),
            findings=found.findings,
            steps_without_profiler=list(self.steps_without_profiler),
        )

    def records(self) -> list[RankRow]:
        """Return a row for each rank, those that others wait for first."""
        found = self.set
        gains = self._gains()
        last = dict(found.calls.group_by("last").len().iter_rows())
        waits = self._waits(found.calls)
        least = self._least_waits().group_by("rank").agg(pl.col("least_ns").sum())
        at_least = dict(least.iter_rows())
        of_rank = {row["rank"]: row for row in waits.iter_rows(named=True)}
        clocks = {row["rank"]: row for row in found.clocks.iter_rows(named=True)}
        on_path = dict(self.path.group_by("rank").agg(pl.col("duration_ns").sum()).iter_rows())
        first_ns = min(found.clocks["entry_ns"].to_list())
        rows: list[RankRow] = []
        for rank in found.rank_numbers:
            row = of_rank.get(rank, {"wait_ns": 0, "transfer_ns": 0, "calls": 0, "decided": 0})
            rows.append(
                RankRow(
                    rank=rank,
                    began_ns=clocks[rank]["entry_ns"] - first_ns,
                    calls=row["calls"],
                    decided_calls=row["decided"],
                    last_at=last.get(rank, 0),
                    wait_ns=row["wait_ns"],
                    wait_at_least_ns=at_least.get(rank, 0),
                    transfer_ns=row["transfer_ns"],
                    path_ns=on_path.get(rank, 0),
                    gain_ns=gains.get(rank, 0),
                    clock_offset_ns=clocks[rank]["offset_ns"],
                )
            )
        return sorted(rows, key=lambda row: (-row["gain_ns"], -row["last_at"], row["rank"]))

    def _gains(self) -> dict[int, int]:
        """Return the largest gain of each rank that others wait for."""
        gains: dict[int, int] = {}
        for remedy in self.late_ranks:
            gains[remedy.rank] = max(gains.get(remedy.rank, 0), remedy.gain_ns)
        return gains

    def _waits(self, calls: pl.DataFrame) -> pl.DataFrame:
        """Sum the calls of each rank, and the times of those that separate waits from transfer."""
        told = calls.select("call", "is_known", "last")
        members = self.set.members.join(told, on="call")
        is_decided = pl.col("last").is_not_null()
        is_told = is_decided | pl.col("is_known")
        times = [
            pl.when(is_told.any()).then(pl.col(name).filter(is_told).sum())
            for name in ("wait_ns", "transfer_ns")
        ]
        return members.group_by("rank").agg(*times, calls=pl.len(), decided=is_decided.sum())

    def _least_waits(self) -> pl.DataFrame:
        """Return the minimum wait of each rank in calls with missing ranks.

        The wait lasts at least until the last of the present ranks came, minus the errors of both
        clocks. Missing ranks cannot shorten it.
        """
        found = self.set
        calls = found.calls.filter(
            pl.col("last").is_null()
            & (pl.col("n_absent") > 0)
            & pl.col("operation").cast(pl.String).is_in(_OF_ALL)
        )
        bounds = found.clocks.filter("connected").select("rank", "bound_ns")
        members = found.members.join(bounds, on="rank")
        by_arrival = members.sort("arrival_ns", "rank")
        latest = by_arrival.group_by("call", maintain_order=True).agg(
            latest=pl.col("rank").last(), latest_bound_ns=pl.col("bound_ns").last()
        )
        least_ns = pl.col("wait_ns") - pl.col("bound_ns") - pl.col("latest_bound_ns")
        named = calls.select("call", "group", "sequence", "operation", "step")
        told = members.join(named, on="call")
        told = told.join(latest, on="call").with_columns(least_ns=least_ns)
        return told.filter(pl.col("least_ns") > 0)

    @property
    def _bounded_calls(self) -> pl.DataFrame:
        """Return the calls with the minimum wait in each, where only that is known."""
        least = (
            self._least_waits()
            .group_by("call")
            .agg(pl.col("latest").first(), wait_at_least_ns=pl.col("least_ns").max())
        )
        return self.set.calls.join(least, on="call", how="left", maintain_order="left")

    def blocks(self) -> list[Block]:
        """Show which rank the others wait for, then ranks, calls and the path."""
        if self.set.calls.is_empty() and len(self.set) > 1:
            return [Sentence(self._matched()), self._apart(), *finding_notes(self.set.findings)]
        return [
            *(Sentence(text) for text in self._sentences()),
            *self.tables(),
            *self._path(),
            *finding_notes(self.set.findings),
        ]

    def tables(self) -> list[Table]:
        """Return the ranks, the calls with the longest waits, and how to see a rank's path."""
        calls = self._longest_calls()
        tables = [self._ranks(), self._calls(calls), self._commands(calls)]
        is_alone = len(self.set) == 1 and calls.is_empty()
        return [] if is_alone else [table for table in tables if table.rows]

    def _repr_html_(self) -> str:
        return html(self.blocks())

    def _sentences(self) -> list[str]:
        told = [*self.verdict(), *_steps_told(self.steps_without_profiler)]
        has_predicted = any(it.basis == "without_profiler" for it in self.late_ranks)
        recorded = [_RECORDED] if has_predicted or self.steps_without_profiler else []
        return [*told, *recorded, self._matched(), *self._processes(), *self._clocks()]

    def _processes(self) -> list[str]:
        """Warn that what counts as one rank may be several processes."""
        if len(self.set) > 1:
            return []
        counts = self.set.trace(*self.set.rank_numbers).warning_counts
        if counts["processes_with_calls"] < _FEWEST_PROCESSES:
            return []
        told = (
            f"The file has runtime API calls of {counts['processes_with_calls']} processes and is "
            "read as one rank. If each process is a rank, record one file for each."
        )
        return [told]

    def _apart(self) -> Table:
        """Show ranks that no call connects."""
        ranks = self.set.ranks
        shown = ranks.head(self.top)
        columns: dict[Column, Value] = {
            Column("rank", "number"): "rank",
            Column("file", "name"): lambda row: escape(row["path"]),
            Column("steps", "count"): "steps",
            Column("events", "count"): "events",
        }
        return tabulated(shown.iter_rows(named=True), columns)

    def _matched(self) -> str:
        calls = self.set.calls
        if calls.is_empty() and len(self.set) == 1:
            path = shlex.quote(self.set.ranks["path"][0])
            return f"No collectives were found; ask the one rank with `longpole summary {path}`."
        if calls.is_empty():
            done = "can be matched" if self._has_unmatched else "were found"
            return (
                f"No collectives {done}: the ranks cannot be joined, and each is on its own clock. "
                "Ask each with `longpole summary`, and compare two with `longpole diff`."
            )
        named = ", ".join(sorted({str(name) for name in calls["operation"].drop_nulls()}))
        operations = f" ({named})" if named else ""
        how = calls["matched_by"].cast(str).value_counts(sort=True).rows()
        ways = [f"by {_METHODS[by]}" for by, _ in how]
        if len(how) > 1:
            ways = [f"{n:,} {way}" for way, (_, n) in zip(ways, how, strict=True)]
        n_calls = count(calls.height, "collective call")
        found = f"{n_calls} {groups_in_words(calls)}{operations}"
        if len(self.set) == 1:
            return f"{found}; with one rank, there is nothing to match."
        return f"{found}, matched {', '.join(ways)}."

    def _clocks(self) -> list[str]:
        clocks = self.set.clocks
        if clocks.height < _FEWEST_CLOCKS:
            return []
        shift = max((clocks["offset_ns"] - clocks["base_ns"]).abs().to_list())
        residual = sorted(clocks["residual_ns"].to_list())[clocks.height // 2]
        bound = max(clocks["bound_ns"].to_list())
        drift = "fitted" if (clocks["drift"] != 0).any() else "not fitted"
        moved = f"shifted by up to {duration(shift)}" if shift else "not shifted"
        edge = max(clocks["edge_bound_ns"].to_list())
        worst = max(clocks["worst_residual_ns"].to_list())
        at_worst = f"; {duration(worst)} at worst" if worst > bound else ""
        agree = f"ends of calls then agree within {duration(residual)} (median{at_worst})"
        limit = f"estimated error up to {duration(bound)} at the calls"
        if duration(edge) != duration(bound):
            limit += f", {duration(edge)} before and after them (20 ppm of drift)"
        return [f"Clocks: {moved}; {agree}; {limit}; drift {drift}."]

    def verdict(self) -> list[str]:
        """Return which rank the others wait for, why, and what a fix saves, as sentences."""
        found = self.set
        if found.calls.is_empty():
            return []
        said = self._skew()
        if found.lacks_ranks and found.tells_waits:
            return [*said, self._recorded()]
        if found.lacks_ranks:
            return [*said, f"{self._missing()}, {_LACKS_RANKS}", *self._at_least()]
        if found.lacks_waits:
            return [_LACKS_WAITS]
        if found.damaged_ranks:
            is_or_are = "is" if len(found.damaged_ranks) == 1 else "are"
            who = f"The trace of {listed(found.damaged_ranks)} {is_or_are} damaged"
            return [*said, f"{who}, {_DAMAGED}", *self._waiting()]
        remedies = self.late_ranks
        late = [remedy.sentence for remedy in remedies]
        nobody = _NEITHER_LATE if len(found) == _FEWEST_CLOCKS else _NOBODY_LATE
        is_outside = any(it.cause == HOST_TIME_OUTSIDE for it in remedies)
        stacks = [_RECORD_STACKS] if is_outside else []
        is_divided = not late and (self.wait_share or 0) > _MOSTLY_WAITING
        divided = [_DIVIDED] if is_divided and not found.has_start_skew else []
        return [*said, *(late or [nobody]), *stacks, *self._waiting(), *divided]

    def _waiting(self) -> Iterator[str]:
        part = self.wait_share
        if part is not None:
            n_left_out = int((self.set.calls["cause"] == _SKEWED).sum())
            left_out = (
                f" ({count(n_left_out, 'call')} with start skew left out)" if n_left_out else ""
            )
            yield (
                f"Of the time in collectives{left_out}, {share(part)} is waiting for the last rank "
                f"and {share(1 - part)} is transfer."
            )

    @property
    def wait_share(self) -> float | None:
        """Waiting as a fraction of the time in calls without start skew; None if unknown."""
        times = self._waits(self.set.calls.filter(pl.col("cause") != _SKEWED))
        wait_ns, transfer_ns = (int(times[name].sum()) for name in ("wait_ns", "transfer_ns"))
        known_ns = wait_ns + transfer_ns
        return wait_ns / known_ns if known_ns else None

    def _skew(self) -> list[str]:
        """Report the start skew as a share of the run, if it matters."""
        if not self.set.has_start_skew:
            return []
        skew = duration(self.set.start_skew_ns)
        pace = duration(self.set.pace_ns)
        said = (
            f"The recordings started at different times: {skew} of the run is start skew; without "
            f"it, the run would take {pace}."
        )
        n_steps = self.set.calls["step"].drop_nulls().n_unique()
        return [said if n_steps >= _FEWEST_STEPS else f"{said} {_ONE_STEP}"]

    def _missing(self) -> str:
        """Report which ranks have no trace, and how many calls lack them."""
        found = self.set
        if len(found) == 1:
            return f"Only the trace of {listed(found.rank_numbers)} is given"
        known = {int(rank) for text in found.calls["absent"] for rank in text.split()}
        absent = sorted((known | {*range(found.world_size or 0)}) - {*found.rank_numbers})
        n_calls = int((found.calls["n_absent"] > 0).sum())
        if not n_calls:
            return "Most calls were found on one rank only"
        of_all = f" (of {found.world_size})" if found.world_size else ""
        who = f"{listed(absent)}{of_all}" if absent else "some ranks"
        take = "takes" if len(absent) == 1 else "take"
        calls = count(found.calls.height, "matched call" if self._has_unmatched else "call")
        if n_calls < found.calls.height:
            calls = f"{n_calls:,} of {calls}"
        elif n_calls > 1:
            calls = f"all {calls}"
        return f"No trace is given of {who}, which {take} part in {calls}"

    @property
    def _has_unmatched(self) -> bool:
        return any(it.kind == "unmatched call" for it in self.set.findings)

    def _at_least(self) -> list[str]:
        """Report the minimum wait of the ranks, independent of the missing ranks."""
        waits = self._least_waits()
        if waits.is_empty():
            return []
        of_rank = waits.group_by("rank").agg(pl.col("least_ns").sum())
        shown = of_rank.sort("least_ns", "rank", descending=[True, False]).head(_MOST_WAITS)
        run_ns = self.set.duration_ns
        told = ", ".join(
            f"rank {rank} at least {duration(least_ns)} ({share(least_ns / run_ns)} of the run)"
            for rank, least_ns in shown.iter_rows()
        )
        top = waits.sort("least_ns", "call", "rank", descending=[True, False, False])
        call = top.row(0, named=True)
        least = f"waited at least {duration(call['least_ns'])} for rank {call['latest']}"
        longest = f"Longest in {call_words(call)}: rank {call['rank']} {least}"
        known = f"Waiting for ranks that are among the traces: {told}."
        cost = "so what these waits cost the run is unknown"
        return [f"{known} {longest}. A missing rank may have come even later, {cost}."]

    def _recorded(self) -> str:
        """Report the rank that the others wait for, according to their own records."""
        members = self.set.members.join(self.set.calls.select("call", "group"), on="call")
        peer = _longest_awaited(members)
        group = f"group {short_name(peer['group'])}" if peer["group"] else "the group"
        waiting = share(self.wait_share or 0)
        return (
            "Most calls have ranks that are not among the traces. The tasks of the collectives "
            f"show that {waiting} of the time in calls is waiting, longest for rank "
            f"{peer['awaited']} of {group}: {duration(peer['awaited_ns'])} in {peer['n']} of "
            f"{count(members.height, 'collective')}. Add the trace of that rank to see the cause."
        )

    def _ranks(self) -> Table:
        rows = self.records()
        columns = dict(RANKS)
        if not any(row["clock_offset_ns"] for row in rows):
            del columns[CLOCK_SHIFT]
        shown = rows[: self.top]
        return without_empty_columns(tabulated(shown, columns))

    def _longest_calls(self) -> pl.DataFrame:
        """Return the calls with the longest waits, the longest first."""
        late = pl.col("late_ns") * pl.col("last").is_not_null()
        recorded = pl.col("wait_ns") * pl.col("awaited").is_not_null()
        order = pl.max_horizontal(late, recorded, pl.col("wait_at_least_ns").fill_null(0))
        return self._calls_of_step.sort(order, "call", descending=[True, False]).head(_MOST_CALLS)

    @property
    def _calls_of_step(self) -> pl.DataFrame:
        """The calls of the requested step, if their steps are known; else all calls."""
        calls = self._bounded_calls
        is_known = self.step is not None and self.step in calls["step"]
        return calls.filter(step=self.step) if is_known else calls

    def _calls(self, calls: pl.DataFrame) -> Table:
        n_calls = self._calls_of_step.height
        of_all = f" ({calls.height} of {n_calls:,})" if calls.height < n_calls else ""
        columns: dict[Column, Value] = {Column(f"call{of_all}", "number"): call_number}
        if self.set.calls["group"].n_unique() > 1:
            columns[Column("group", "name")] = "group"
        if self.set.calls["step"].n_unique() > 1:
            columns[Column("step", "number")] = "step"
        if calls["pair"].any():
            columns[Column("ranks")] = self._members_of
        # Columns on the left are shown even if not all fit.
        is_transfer = (calls["cause"] == "transfer").all()
        columns |= OPERATION | (TRANSFERS | ARRIVALS if is_transfer else ARRIVALS | TRANSFERS)
        if not (calls["cause"] == "inconclusive").all():
            columns |= {Column("cause"): "cause", Column("what to do"): self._what_to_do}
        return without_empty_columns(tabulated(calls.iter_rows(named=True), columns))

    def _what_to_do(self, call: dict[str, Any]) -> str:
        is_joinable = (
            call["cause"] == "transfer"
            and call["transfer_ns"] is not None
            and is_small(call["transfer_ns"], call["bytes"])
            and self._sends_in_a_row(call)
        )
        return what_to_do(call, is_joinable=is_joinable)

    def _sends_in_a_row(self, call: dict[str, Any]) -> bool:
        """Whether the verdict of a rank that takes part lists the remedy for small messages."""
        members = self.set.members.filter(call=call["call"])["rank"]
        return self._lists_small_messages(min(members))

    @cached_property
    def _lists_small_messages(self) -> Callable[[int], bool]:
        """Whether the verdict of a rank lists this remedy; each verdict is found once."""

        @cache
        def lists(rank: int) -> bool:
            remedies = self.set.trace(rank).answer(self.set.question).remedies
            return any(row.remedy == "small_messages" and row.is_listed for row in remedies)

        return lists

    def _members_of(self, call: dict[str, Any]) -> str:
        ranks = self.set.members.filter(call=call["call"])["rank"].sort()
        return ", ".join(map(str, ranks))

    def _commands(self, calls: pl.DataFrame) -> Table:
        """Show the commands for the paths of late ranks, and of those that came last."""
        late = [remedy.rank for remedy in self.late_ranks]
        is_late = pl.col("cause").is_in(["late arrival", "mixed"])
        decided = calls.filter(is_late, pl.col("last").is_not_null())
        # The longest wait for a rank is the first of its calls.
        steps = dict(reversed(decided.select("last", "step").rows()))
        last = decided["last"]
        paths = dict(self.set.ranks.select("rank", "path").iter_rows())
        rows = [
            {"rank": rank, "command": self._command(paths[rank], steps.get(rank))}
            for rank in dict.fromkeys([*late, *last])
            if not is_address(paths[rank])
        ]
        columns: dict[Column, Value] = {
            Column("rank", "number"): "rank",
            Column("to see its path"): "command",
        }
        return tabulated(rows[:_MOST_PATHS], columns)

    def _command(self, path: str, step_of_call: int | None) -> str:
        number = step_of_call if self.step is None else self.step
        step = "" if number is None else f" --step {number}"
        name = self.set.step_name
        return f"longpole path {shlex.quote(path)}{step}" + (
            "" if name is None else f" --step-name {shlex.quote(name)}"
        )

    def _path(self) -> list[Block]:
        length_ns = int(self.path["duration_ns"].sum())
        if not length_ns:
            return [Sentence("There is no critical path.")]
        over = listed(self.path["rank"].unique().to_list())
        what = "the run" if self.step is None else f"step {self.step}"
        title = f"Critical path of {what}, {duration(length_ns)} over {over}:"
        return [Sentence(title), Chart(path_bars(self.path))]


def _longest_awaited(members: pl.DataFrame) -> dict[str, Any]:
    """Find the rank of a group for which the others recorded the longest waits."""
    known = members.filter(pl.col("awaited").is_not_null())
    peers = known.group_by("group", "awaited").agg(pl.col("awaited_ns").sum(), n=pl.len())
    order = ("awaited_ns", "group", "awaited")
    return peers.sort(*order, descending=[True, False, False]).row(0, named=True)


_METHODS: Final = {
    "call_id": "call id",
    "sequence": "sequence number",
    "pair": "pair of ranks",
    "order": "order (inferred)",
}


def ranks(
    traces: TraceSet,
    step: int | None = None,
    *,
    top: int = _MOST_ROWS,
    step_time_ns: int | None = None,
) -> Ranks:
    """Find the rank that makes the others wait, the cause, and the gain of a fix.

    Parameters
    ----------
    traces
        From `read_traces`.
    step
        Number of the step for the path; by default the whole run.
    top
        Number of ranks to show.
    step_time_ns
        The time of a step without a profiler. The answer then contains what the steps of each rank
        take without it, and gains are of that run; waits and the path stay as recorded.

    Raises
    ------
    WindowError
        A rank has no step with this number.

    Examples
    --------
    >>> print(ranks(read_traces("traces/")).path)  # doctest: +SKIP
    """
    steps = () if step_time_ns is None else _steps_without_profiler(traces, step_time_ns)
    return Ranks(traces, step, traces.path(step), top, steps, step_time_ns)


def _steps_without_profiler(traces: TraceSet, step_time_ns: int) -> tuple[RankStep, ...]:
    """Return the median step of each rank, as recorded and without the profiler.

    A rank may wait longer for the others than the time allows: the time must fit one rank.
    """
    steps: list[RankStep] = []
    for rank in traces.rank_numbers:
        cost = traces.trace(rank).recording_cost(step_time_ns)
        steps.append(
            RankStep(
                rank=rank,
                recorded_step_ns=cost["recorded_step_ns"],
                step_ns=None if cost["misfit"] else cost["step_ns"],
                reason=cost["misfit"] or cost["reason"],
            )
        )
    return tuple(steps)


def _steps_told(steps: Sequence[RankStep]) -> Iterator[str]:
    """Yield the step times without the profiler, and the ranks for which they are unknown."""
    known = [row for row in steps if row["step_ns"] is not None]
    if known:
        recorded = [row["recorded_step_ns"] or 0 for row in known]
        least, most = duration(min(recorded)), duration(max(recorded))
        span = least if least == most else f"{least} to {most}"
        yield (
            f"The step takes {duration(known[0]['step_ns'] or 0)} without the profiler, as given "
            f"({span} recorded)."
        )
    unknown = [row for row in steps if row["step_ns"] is None]
    if unknown:
        who = listed([row["rank"] for row in unknown])
        yield f"Without the profiler, the step of {who} is unknown: {unknown[0]['reason']}."


def _text(frame: pl.DataFrame, name: str) -> pl.Series:
    return frame[name].cast(pl.String)
