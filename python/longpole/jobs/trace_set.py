"""Several ranks, joined: their calls, clocks, critical path, and the effect of changes."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from longpole._core import JointRanks
from longpole.engine.critical_path.changes import parts_of
from longpole.engine.question import Question
from longpole.errors import RanksError, WindowError
from longpole.jobs.call_columns import (
    recorded_waits,
    with_bandwidth,
    with_recorded,
    with_recorded_cause,
    with_skew,
)
from longpole.jobs.engines import TIMEOUT_S
from longpole.jobs.findings import (
    NOT_A_TRACE,
    RankFinding,
    disagreement,
    finding_notes,
    in_order,
    listed,
)
from longpole.jobs.late_paths import late_on_path
from longpole.jobs.late_ranks import late_ranks
from longpole.jobs.path import PathRanks, path_frame
from longpole.jobs.reading import Change, OpenRanks
from longpole.jobs.runs import no_ranks, of_one_run, parts_of_time, unrelated
from longpole.report.blocks import Column, Sentence, tabulated
from longpole.report.html import html
from longpole.rows.frames import frame_of
from longpole.words.wording import count, escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

    from longpole._core import JointSolution, ReducedRank
    from longpole.engine.critical_path.changes import Change as PathChange
    from longpole.jobs.engines import Engine
    from longpole.jobs.late_ranks import RankRemedy
    from longpole.jobs.reading import Reading, ReadRank
    from longpole.report.blocks import Block, Value
    from longpole.trace.trace import Trace

_SKEW_SHARE: Final = 0.02
_MOST_STEPS: Final = 8
"""Maximum number of steps listed in a message."""


class TraceSet:
    """The ranks of one run, analysed together."""

    def __init__(
        self,
        read: Sequence[ReadRank],
        reading: Reading,
        *,
        engine: Engine = "threads",
        workers: int = 1,
        timeout_s: float = TIMEOUT_S,
        kept: Mapping[str, Trace] | None = None,
    ) -> None:
        chosen, of_others = of_one_run(read)
        self._read, findings = in_order(chosen)
        self._file_findings = [*of_others, *findings]
        self._late: dict[int | None, tuple[RankRemedy, ...]] = {}
        self._join(is_numbered=any(it.rank is not None for it in self._read))
        files = [it.source.path for it in self._read]
        self._opened = OpenRanks(
            files, reading, engine=engine, workers=workers, timeout_s=timeout_s, kept=kept or {}
        )

    def _join(self, *, is_numbered: bool) -> None:
        """Join the ranks; leave out those of another recording, which no call joins."""
        if not self._read:
            reasons = "; ".join(finding.message for finding in self._file_findings[:3])
            message = f"no rank could be read: {reasons}"
            raise RanksError(message)
        self._joint = JointRanks([self._reduced(place) for place in range(len(self._read))])
        parts = parts_of_time(self._read)
        calls: dict[int, set[int]] = {}
        for call, place in frame_of(self._joint.members()).select("call", "place").iter_rows():
            calls.setdefault(call, set()).add(parts[place])
        if not calls and not is_numbered and len(self._read) > 1:
            raise no_ranks(self._read)
        if not calls or len(set(parts)) == 1 or any(len(joined) > 1 for joined in calls.values()):
            return
        self._read, findings = unrelated(self._read)
        self._file_findings += findings
        self._joint = JointRanks([self._reduced(place) for place in range(len(self._read))])

    def __len__(self) -> int:
        """Return the number of ranks read."""
        return len(self._read)

    def __repr__(self) -> str:
        """Return a one-line summary."""
        return f"<longpole.TraceSet: {len(self)} ranks, {self.calls.height} calls>"

    @property
    def question(self) -> Question:
        """What is asked about each rank."""
        reading = self._opened.reading
        return Question(step_name=reading.step_name, data_load=reading.data_load)

    @property
    def step_name(self) -> str | None:
        """Regular expression for annotations that mark steps; None for the default."""
        return self._opened.reading.step_name

    @property
    def joint(self) -> JointRanks:
        """The ranks as an object of the compiled core."""
        return self._joint

    def blocks(self) -> list[Block]:
        """Return an overview: the ranks that others wait for, the files, and their findings."""
        columns: dict[Column, Value] = {
            Column("rank", "number"): "rank",
            Column("file", "name"): lambda row: escape(row["path"]),
            Column("steps", "count"): "steps",
            Column("calls", "count"): "calls",
            Column("events", "count"): "events",
        }
        return [
            Sentence(f"{count(len(self), 'rank')}, {count(self.calls.height, 'call')}"),
            *(Sentence(remedy.sentence) for remedy in self.late_ranks()),
            tabulated(self.ranks.iter_rows(named=True), columns),
            *finding_notes(self.findings),
        ]

    def _repr_html_(self) -> str:
        return html(self.blocks())

    @cached_property
    def rank_numbers(self) -> tuple[int, ...]:
        """Rank numbers, ascending; other tables refer to ranks by these."""
        return tuple(self._number(place) for place in range(len(self)))

    @property
    def world_size(self) -> int | None:
        """Number of ranks of the program, or None if the files disagree or do not contain it."""
        sizes = {self._reduced(place).world_size for place in range(len(self))}
        return sizes.pop() if len(sizes) == 1 else None

    @cached_property
    def ranks(self) -> pl.DataFrame:
        """Each rank: `rank`, `path`, `host`, `events`, `bytes`, `steps`, `calls`, `recovered`."""
        import polars as pl

        rows = [
            {
                "rank": self.rank_numbers[place],
                "path": read.source.path,
                "host": self._reduced(place).host,
                "events": read.n_events,
                "bytes": read.n_bytes,
                "steps": len(self._reduced(place).steps),
                "calls": self._reduced(place).n_members,
                "recovered": read.is_recovered,
            }
            for place, read in enumerate(self._read)
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """Numbers of the steps that every rank has."""
        common = set(self._reduced(0).steps)
        for place in range(1, len(self)):
            common &= set(self._reduced(place).steps)
        return tuple(sorted(common))

    @cached_property
    def clocks(self) -> pl.DataFrame:
        """How the clock of each rank is converted to that of the first.

        Columns: `rank`, `offset_ns` (added to its times), `base_ns` (the part of it recorded in the
        files), `drift`, `residual_ns`, `worst_residual_ns` (remaining differences between ends of
        calls), `bound_ns` (largest possible error between its first and last call), `edge_bound_ns`
        (the same over the whole recording; both assume a drift of at most 20 ppm where not all
        ranks have calls), `calls`, `connected`, `entry_ns` (start of its program in the recording,
        on the common clock).
        """
        import polars as pl

        numbers = pl.Series("rank", self.rank_numbers, dtype=pl.Int64)
        return frame_of(self._joint.clocks()).with_columns(numbers)

    @cached_property
    def members(self) -> pl.DataFrame:
        """One row per call and rank, on the common clock.

        Columns: `call`, `rank`, `event` (in its trace), `arrival_ns`, `end_ns`, `wait_ns` (for the
        last rank), `transfer_ns`, `in_elements`, `awaited` and `awaited_ns`. If the last rank is
        not known and the profile shows the tasks of the collective (Ascend), wait and transfer are
        as recorded by the rank itself. `awaited` is then the rank it waited for longest, by its
        index in the group, and `awaited_ns` the time it waited.
        """
        frame = frame_of(self._joint.members())
        frame = frame.with_columns(rank=self._ranks_of(frame["place"])).select(
            "call",
            "rank",
            "event",
            "arrival_ns",
            "end_ns",
            "wait_ns",
            "transfer_ns",
            "in_elements",
        )
        calls = frame_of(self._joint.calls())
        waits = recorded_waits(self._read, self.rank_numbers)
        return with_recorded(frame, waits, calls.filter(calls["last"].is_null())["call"])

    @cached_property
    def calls(self) -> pl.DataFrame:
        """Each call of several ranks, in order of time.

        Columns: `call`, `group`, `sequence`, `step`, `operation`, `pair`, `data_type`, `bytes`,
        `members`, `n_absent` (ranks that take part and are not among the traces), `absent`,
        `n_missing`, `matched_by` (`call_id`, `sequence`, `pair`, or `order`, which is inferred),
        `last` (the rank that came last), `late_ns` (relative to the median rank), `wait_share`,
        `awaited` (if the last rank is not known: the one the members recorded the longest wait for,
        by its index in the group), `transfer_ns` (median; null where it cannot be separated from
        waiting), `algorithm_gb_per_s`, `bus_gb_per_s`, `slow_transfer` (relative to similar calls),
        `cause`.
        """
        import polars as pl

        frame = frame_of(self._joint.calls())
        frame = frame.with_columns(
            pl.col("cause").cast(pl.String), last=self._ranks_of(frame["last"])
        )
        waits = self.members.group_by("call").agg(
            wait_ns=pl.col("wait_ns").sum(),
            moved_ns=pl.col("transfer_ns").sum(),
            transfer_ns=pl.col("transfer_ns").median().cast(pl.Int64),
            awaited=pl.col("awaited").get(pl.col("awaited_ns").arg_max()),
            is_known=pl.col("awaited").is_not_null().all(),
        )
        total = pl.col("wait_ns") + pl.col("moved_ns")
        is_told = pl.col("last").is_not_null() | pl.col("is_known")
        frame = frame.join(waits, on="call", how="left").with_columns(
            wait_share=pl.when(is_told & (total > 0)).then(pl.col("wait_ns") / total),
            transfer_ns=pl.when(is_told).then("transfer_ns"),
        )
        frame = frame.sort("call")
        if self.has_start_skew:
            bound_ns = max(self.clocks["bound_ns"].to_list())
            frame = with_skew(frame, self.together.late_ns(), bound_ns=bound_ns)
        return with_bandwidth(with_recorded_cause(frame)).sort("call")

    @cached_property
    def findings(self) -> tuple[RankFinding, ...]:
        """Problems of the files and disagreements between them, most severe first."""
        found = list(self._file_findings)
        found += [disagreement(row, self.rank_numbers) for row in self._joint.findings()]
        absent = sorted({int(rank) for text in self.calls["absent"] for rank in text.split()})
        if absent:
            is_or_are = "is" if len(absent) == 1 else "are"
            message = f"{listed(absent)} {is_or_are} not among the traces"
            found.append(RankFinding("absent rank", message, tuple(absent)))
        apart = self.clocks.filter(~self.clocks["connected"])["rank"].to_list()
        if apart:
            first = self.rank_numbers[0]
            message = f"no call joins {listed(apart)} to rank {first}: their clocks may differ"
            found.append(RankFinding("unconnected clocks", message, tuple(apart)))
        return tuple(sorted(found, key=lambda finding: finding.kind == NOT_A_TRACE))

    @cached_property
    def solution(self) -> JointSolution:
        """The joint graph as observed."""
        return self._joint.solve([], together=False)

    @cached_property
    def together(self) -> JointSolution:
        """The joint graph as if all recordings began together."""
        return self._joint.solve([], together=True)

    @property
    def run_ns(self) -> tuple[int, int]:
        """Earliest start and last completion, on the common clock."""
        return self.solution.run

    @property
    def duration_ns(self) -> int:
        """Duration of the run."""
        return self.run_ns[1] - self.run_ns[0]

    @cached_property
    def start_skew_ns(self) -> int:
        """How much shorter the run would be if all recordings began together."""
        start, end = self.together.run
        return max(self.duration_ns - (end - start), 0)

    @property
    def has_start_skew(self) -> bool:
        """Whether the start skew is more than 2 % of the run."""
        return self.start_skew_ns > _SKEW_SHARE * self.duration_ns

    @property
    def pace_ns(self) -> int:
        """Duration of the run; without the start skew if that is large."""
        return self.duration_ns - (self.start_skew_ns if self.has_start_skew else 0)

    @cached_property
    def step_times(self) -> pl.DataFrame:
        """Completion of each step on each rank.

        Columns: `step`, `rank`, `completion_ns` (on the common clock), `duration_ns` (from the
        completion of the previous recorded step, over all ranks; null for the first), `late_ns`
        (its completion relative to that of the median rank).
        """
        import polars as pl

        done = frame_of(self.solution.completions()).filter(pl.col("step").is_not_null())
        done = done.with_columns(rank=self._ranks_of(done["place"]), completion_ns="time_ns")
        last = done.group_by("step").agg(before_ns=pl.col("time_ns").max()).sort("step")
        before = last.with_columns(pl.col("before_ns").shift())
        time = pl.col("completion_ns")
        return (
            done.join(before, on="step", how="left")
            .with_columns(
                duration_ns=time - pl.col("before_ns"),
                late_ns=time - time.quantile(0.5, "lower").over("step").cast(pl.Int64),
            )
            .select("step", "rank", "completion_ns", "duration_ns", "late_ns")
            .sort("step", "rank")
        )

    def path(self, step: int | None = None) -> pl.DataFrame:
        """Find the critical path across ranks.

        Parameters
        ----------
        step
            Number of a step. Its window is from the completion of the previous recorded step, over
            all ranks, to its own completion. By default, the whole run.

        Returns
        -------
        DataFrame
            Segments that tile the window, in time order: `rank`, `start_ns`, `end_ns`,
            `duration_ns` (on the common clock), `kind` (as in `CriticalPath.segments`, and
            `transfer`), `event` (in the trace of the rank), `name`, `evidence`, `certainty`,
            `call`.

        Raises
        ------
        WindowError
            Some rank lacks the step.
        """
        return self._run_path if step is None else self._path(step)

    @cached_property
    def _run_path(self) -> pl.DataFrame:
        return self._path(None)

    def _path(self, step: int | None) -> pl.DataFrame:
        start_ns, end_ns = self.window(step)
        legs = frame_of(self.solution.legs(step, start_ns))
        opened = PathRanks(self.rank_numbers, self._opened.files, self._opened.expanded)
        return path_frame(legs, opened, self.solution, self.calls, (start_ns, end_ns))

    def window(self, step: int | None = None) -> tuple[int, int]:
        """Return the window of a step, or of the whole run, on the common clock."""
        if step is None:
            return self.run_ns
        import polars as pl

        if step not in self.steps:
            listed = ", ".join(map(str, self.steps[:_MOST_STEPS]))
            more = ", ..." if len(self.steps) > _MOST_STEPS else ""
            known = f"all have {listed}{more}" if self.steps else "they have no step in common"
            message = f"not every rank has a step {step}; {known}"
            raise WindowError(message)
        done = frame_of(self.solution.completions())
        last = done.group_by("step").agg(pl.col("time_ns").max())
        times = dict(last.filter(pl.col("step").is_not_null()).rows())
        # Step numbers may have gaps, so the previous step is the last recorded one.
        before = max((number for number in times if number < step), default=None)
        start_ns = self.run_ns[0] if before is None else times[before]
        return start_ns, max(times[step], start_ns)

    def what_if(self, changes: Mapping[int, Sequence[PathChange]]) -> int:
        """Return the duration of the run with changes to some ranks, in ns.

        Parameters
        ----------
        changes
            Changes by rank, in the form of `CriticalPath.what_if`.

        Examples
        --------
        >>> ranks.what_if({5: [Scale(kind="data_loading", by=0.5)]})  # doctest: +SKIP
        """
        start, end = self.changed(changes).run
        return end - start

    def changed(self, changes: Mapping[int, Sequence[PathChange]]) -> JointSolution:
        """Solve the joint graph with changes to some ranks, in the form of `what_if`."""
        places = {self._place(rank): list(map(parts_of, these)) for rank, these in changes.items()}
        asked = [self._change(at, changes=these) for at, these in sorted(places.items())]
        reduced = map(_known, self._opened.reduced(asked))
        return self._joint.solve(list(zip(sorted(places), reduced, strict=True)), together=False)

    def late_ranks(self, step_time_ns: int | None = None) -> tuple[RankRemedy, ...]:
        """Return the ranks that others wait for, with cause and gain, largest gain first.

        Gains are those of the run without the profiler, unless what recording cost is unknown. With
        start skew, a cause that the recorded path contradicts is replaced by the one that it shows,
        or by `unknown cause`.

        Parameters
        ----------
        step_time_ns
            The time of a step without the profiler, if known.
        """
        if step_time_ns not in self._late:
            self._late[step_time_ns] = self._late_ranks(step_time_ns)
        return self._late[step_time_ns]

    @property
    def lacks_waits(self) -> bool:
        """Whether most calls run on other threads than those that wait for them, as with gloo.

        A trace does not link the two, so the path does not pass through such calls.
        """
        n_joined = sum(
            int((frame_of(self._reduced(at).boundary_nodes())["kind"] == "arrival").sum())
            for at in range(len(self))
        )
        return 2 * n_joined < sum(self._reduced(at).n_members for at in range(len(self)))

    @property
    def tells_waits(self) -> bool:
        """Whether the ranks recorded their awaited peer in most calls without a known last rank."""
        unknown = self.calls.filter(self.calls["last"].is_null())
        return bool(2 * unknown["awaited"].is_not_null().sum() > unknown.height)

    @cached_property
    def damaged_ranks(self) -> tuple[int, ...]:
        """Ranks whose times cannot be compared with others, since their files lost too much."""
        damages = [read.damage for read in self._read]
        return tuple(
            number
            for number, damage in zip(self.rank_numbers, damages, strict=True)
            if damage is not None and damage.is_grave
        )

    @property
    def lacks_ranks(self) -> bool:
        """Whether ranks without a trace take part in half of the calls of several ranks."""
        is_of_one = (self.calls["members"] == 1) & (self.calls["n_absent"] == 0)
        has_others = len(self) > 1  # else, the size of a group may be unknown
        joint = self.calls.filter(~is_of_one.fill_null(value=False)) if has_others else self.calls
        return bool(2 * joint["last"].is_null().sum() > joint.height)

    def _late_ranks(self, step_time_ns: int | None) -> tuple[RankRemedy, ...]:
        if len(self) == 1 or self.calls.is_empty() or self.lacks_ranks or self.lacks_waits:
            return ()
        if self.damaged_ranks:
            return ()
        recorded = [self._reduced(place) for place in range(len(self))]
        predicted = self._predicted(step_time_ns)
        remedies = late_ranks(
            recorded,
            predicted or recorded,
            self.rank_numbers,
            partial(self._paces_ns, predicted, step_time_ns),
            self.step_name,
        )
        found = late_on_path(self, remedies) if self.has_start_skew else remedies
        return tuple(map(self._placed, found))

    def _placed(self, remedy: RankRemedy) -> RankRemedy:
        """Return a remedy with the host and the device of its rank."""
        place = self._place(remedy.rank)
        device, name = self._read[place].device
        host = self._reduced(place).host
        return replace(remedy, host=host, device=device, device_name=name)

    def trace(self, rank: int) -> Trace:
        """Read the trace of one rank again; the most recent ones are kept."""
        return self._opened.trace(self._place(rank))

    def _predicted(self, step_time_ns: int | None) -> list[ReducedRank] | None:
        """Return the ranks without the profiler; None if its cost is unknown for some of them.

        Only some of them without it would make the others late.
        """
        found: Iterable[ReducedRank | None] = (it.predicted for it in self._read)
        if step_time_ns is not None:
            changes = (self._change(place) for place in range(len(self)))
            found = self._opened.reduced(
                [replace(it, is_as_recorded=False, step_time_ns=step_time_ns) for it in changes]
            )
        known = [rank for rank in found if rank is not None]
        return known if len(known) == len(self) else None

    def _paces_ns(
        self,
        predicted: Sequence[ReducedRank] | None,
        step_time_ns: int | None,
        scalings: Sequence[tuple[int, list[tuple[Any, ...]]]],
    ) -> tuple[int, list[int]]:
        """Return the duration of the run without start skew, and with each scaling alone."""
        changes = (self._change(place, scalings=these) for place, these in scalings)
        is_as_recorded = predicted is None
        asked = [
            replace(it, is_as_recorded=is_as_recorded, step_time_ns=step_time_ns) for it in changes
        ]
        reduced = map(_known, self._opened.reduced(asked))
        others = dict(enumerate(predicted or ()))
        changed = [
            self._pace_of(others | {place: rank})
            for (place, _), rank in zip(scalings, reduced, strict=True)
        ]
        return self._pace_of(others), changed

    def _pace_of(self, changed: Mapping[int, ReducedRank]) -> int:
        """Return the duration of the run without start skew, with some ranks changed."""
        start, end = self._joint.solve([*changed.items()], together=self.has_start_skew).run
        return end - start

    def _change(
        self,
        place: int,
        changes: Sequence[tuple[Any, ...]] = (),
        scalings: Sequence[tuple[Any, ...]] = (),
    ) -> Change:
        return Change(self._read[place].source.path, self._number(place), changes, scalings)

    def _reduced(self, place: int) -> ReducedRank:
        reduced = self._read[place].reduced
        if reduced is None:
            message = "a rank that was not read takes part"
            raise AssertionError(message)
        return reduced

    def _number(self, place: int) -> int:
        number = self._reduced(place).rank
        return place if number is None else number

    def _place(self, rank: int) -> int:
        if rank not in self.rank_numbers:
            message = f"rank {rank} is not among the traces"
            raise WindowError(message)
        return self.rank_numbers.index(rank)

    def _ranks_of(self, places: pl.Series) -> pl.Series:
        import polars as pl

        return pl.Series(
            places.name,
            [None if place is None else self.rank_numbers[place] for place in places],
            dtype=pl.Int64,
        )


def _known(rank: ReducedRank | None) -> ReducedRank:
    """Return a rank that was reduced with these times before."""
    if rank is None:
        message = "a rank has lost its cost of recording"
        raise AssertionError(message)
    return rank
