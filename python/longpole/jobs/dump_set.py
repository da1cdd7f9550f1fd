"""Flight recorder dumps of several ranks, joined: which call hangs and which ranks cause it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from longpole._core import JointRanks
from longpole.errors import RanksError
from longpole.jobs.findings import RankFinding, disagreement, has_or_have, listed
from longpole.jobs.flight_recorder import is_dump, read_dump
from longpole.jobs.sources import find_sources
from longpole.rows.frames import frame_of
from longpole.words.wording import count

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import polars as pl

    from longpole.jobs.flight_recorder import Dump, Entry

_STATES: Final = ("completed", "started", "scheduled")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A rank, and the place in the program of its call or of its last call."""

    rank: int
    place: str
    """The innermost frame outside the library."""


@dataclass(frozen=True, slots=True)
class OpenCall:
    """The first call of a group that not every rank has completed."""

    group: str
    sequence: int
    operation: str
    last_complete: int | None
    """The last sequence number that all ranks completed; None if the dumps hold none."""
    missing: tuple[int, ...]
    """Ranks of the group that have not made the call."""
    scheduled: tuple[int, ...]
    """Ranks that made the call but whose GPU has not started it."""
    started: tuple[int, ...]
    """Ranks whose GPU is waiting in the call."""
    completed: tuple[int, ...]
    absent: tuple[int, ...]
    """Ranks of the group without a dump."""
    places: tuple[Place, ...]
    """Places of the calls in the program; for ranks without the call, of their last one."""
    waits_for: tuple[int, ...]
    """The ranks that the others wait for."""
    is_root: bool
    """Whether none of the ranks in `waits_for` waits in another open call."""


def dump_paths(sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """List the dumps among the given files, or in the given directory or pattern.

    Raises
    ------
    RanksError
    No file matches.
    """
    found = find_sources(sources, is_file=is_dump)
    return [it.path for it in found if is_dump(it.path)]


def read_dumps(sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> DumpSet:
    """Read PyTorch flight recorder dumps in JSON, one per rank.

    Parameters
    ----------
    sources
        A directory, a glob pattern, or a list of files. The rank is the number in the file name: a
        dump does not contain it.

    Raises
    ------
    RanksError
        There is no dump, or all are pickles or damaged.

    Examples
    --------
    >>> hang = read_dumps("/tmp/dumps")  # doctest: +SKIP
    >>> hang.open_calls[0].missing  # doctest: +SKIP
    (1,)
    """
    read: list[Dump] = []
    findings = []
    problems = []
    for source in find_sources(sources, is_file=is_dump):
        try:
            read.append(read_dump(source))
        except RanksError as error:
            problems.append(error)
            message = str(error).split("\n", maxsplit=1)[0]
            findings.append(RankFinding("unreadable rank", message))
    if not read:
        raise problems[0]
    return DumpSet(read, findings)


class DumpSet:
    """The flight recorder dumps of a run, analysed together."""

    def __init__(self, dumps: Sequence[Dump], findings: Iterable[RankFinding] = ()) -> None:
        numbered: dict[int, Dump] = {}
        self._file_findings = list(findings)
        for place, dump in enumerate(dumps):
            named = dump.source.named_rank
            number = place if named is None else named
            if number in numbered:
                message = f"rank {number} has several dumps; {dump.source.path} is ignored"
                self._file_findings.append(RankFinding("duplicate rank", message, (number,)))
            else:
                numbered[number] = dump
        self._dumps = dict(sorted(numbered.items()))
        self._file_findings += _damaged(self._dumps)
        self._firsts = _firsts(self._dumps.values())
        self._joint = JointRanks(
            [dump.reduced(rank, self._firsts) for rank, dump in self._dumps.items()]
        )

    def __len__(self) -> int:
        """Return the number of dumps read."""
        return len(self._dumps)

    @property
    def rank_numbers(self) -> tuple[int, ...]:
        """The number of each rank, ascending."""
        return tuple(self._dumps)

    @cached_property
    def members(self) -> pl.DataFrame:
        """One row per call and rank.

        Columns: `call`, `group`, `sequence`, `operation`, `rank`, `record`, `state`,
        `in_elements`, `data_type`, `created_ns`, `place`.
        """
        import polars as pl

        shown = {rank: dump.shown(self._firsts) for rank, dump in self._dumps.items()}
        rows = []
        for call, place, member in (
            frame_of(self._joint.members()).select("call", "place", "member").iter_rows()
        ):
            rank = self.rank_numbers[place]
            entry = shown[rank][member]
            rows.append((call, rank, *_facts(entry)))
        schema = {
            "call": pl.UInt32,
            "rank": pl.Int64,
            "group": pl.String,
            "sequence": pl.Int64,
            "operation": pl.String,
            "record": pl.Int64,
            "state": pl.String,
            "in_elements": pl.Int64,
            "data_type": pl.String,
            "created_ns": pl.Int64,
            "place": pl.String,
        }
        return pl.DataFrame(rows, schema=schema, orient="row")

    @cached_property
    def calls(self) -> pl.DataFrame:
        """One row per call, in order of the sequence number.

        Columns: `call`, `group`, `sequence`, `operation`, `pair`, `members`, `absent`, `n_missing`,
        `n_absent`, and how many ranks are `completed`, `started` and `scheduled`.
        """
        import polars as pl

        states = [(pl.col("state") == state).sum().alias(state) for state in _STATES]
        counted = self.members.group_by("call").agg(*states)
        frame = frame_of(self._joint.calls()).with_columns(pl.col("operation").cast(pl.String))
        columns = ("call", "group", "sequence", "operation", "pair", "members", "absent")
        return (
            frame.select(*columns, "n_missing", "n_absent")
            .join(counted, on="call", how="left")
            .sort("group", "pair", "sequence", "call")
        )

    @cached_property
    def findings(self) -> tuple[RankFinding, ...]:
        """Disagreements between the ranks, and what is missing in the dumps."""
        found = list(self._file_findings)
        found += [
            disagreement(row, self.rank_numbers, may_lie_outside=False)
            for row in self._joint.findings()
        ]
        absent = sorted({int(rank) for text in self.calls["absent"] for rank in text.split()})
        if absent:
            message = f"{listed(absent)} {has_or_have(absent)} no dump"
            found.append(RankFinding("absent rank", message, tuple(absent)))
        return tuple(found)

    @cached_property
    def open_calls(self) -> tuple[OpenCall, ...]:
        """The first call of each group that not every rank has completed, causes first."""
        found = [self._open(row) for row in self._first_open()]
        marked = [_with_root(call, found) for call in found]
        return tuple(sorted(marked, key=lambda it: (not it.is_root, it.group, it.sequence)))

    def _first_open(self) -> list[dict[str, Any]]:
        """Return the first open call of each group, or of each pair for point-to-point messages."""
        import polars as pl

        is_open = (pl.col("completed") < pl.col("members")) | (pl.col("n_missing") > 0)
        rows = self.calls.filter(is_open)
        pairs = rows.filter("pair")
        others = rows.filter(~pl.col("pair")).unique("group", keep="first", maintain_order=True)
        first: dict[tuple[str, tuple[int, ...]], dict[str, Any]] = {}
        for row in pairs.iter_rows(named=True):
            ranks = self._ranks_of(row["call"])
            first.setdefault((row["group"], tuple(sorted(ranks))), row)
        return [*others.iter_rows(named=True), *first.values()]

    def _ranks_of(self, call: int) -> dict[int, Entry]:
        return self._entries[call]

    @cached_property
    def _entries(self) -> dict[int, dict[int, Entry]]:
        """The entry of each rank in each call."""
        known = {
            rank: {entry.record: entry for entry in reversed(dump.entries)}
            for rank, dump in self._dumps.items()
        }
        found: dict[int, dict[int, Entry]] = defaultdict(dict)
        for call, rank, record in self.members.select("call", "rank", "record").iter_rows():
            found[call][rank] = known[rank][record]
        return found

    def _open(self, row: dict[str, Any]) -> OpenCall:
        own = self._ranks_of(row["call"])
        in_state = {
            state: tuple(sorted(rank for rank, it in own.items() if it.state == state))
            for state in _STATES
        }
        missing = self._missing(row, own)
        late = missing or (in_state["scheduled"] if in_state["started"] else ())
        places = [(rank, it.place) for rank, it in own.items()]
        places += [(rank, self._last_place(rank)) for rank in missing]
        return OpenCall(
            group=row["group"],
            sequence=row["sequence"],
            operation=row["operation"] or "unknown",
            last_complete=self._last_complete(row),
            missing=missing,
            scheduled=in_state["scheduled"],
            started=in_state["started"],
            completed=in_state["completed"],
            absent=tuple(int(rank) for rank in row["absent"].split()),
            places=tuple(Place(rank, place) for rank, place in sorted(places) if place),
            waits_for=late,
            is_root=True,
        )

    def _last_complete(self, row: dict[str, Any]) -> int | None:
        """Return the number of the call before the first open one; None for messages of pairs."""
        import polars as pl

        is_before = (pl.col("group") == row["group"]) & (pl.col("sequence") < row["sequence"])
        before = self.calls.filter(is_before & ~pl.col("pair"))["sequence"].to_list()
        return None if row["pair"] or not before else before[-1]

    def _missing(self, row: dict[str, Any], own: dict[int, Entry]) -> tuple[int, ...]:
        """Return the ranks whose dump lacks the call although they take part in it."""
        if row["n_missing"] == 0:
            return ()
        for finding in self.findings:
            is_it = finding.kind == "missing call" and finding.group == row["group"]
            number = finding.sequence
            if is_it and number is not None and number <= row["sequence"] < number + finding.count:
                return tuple(rank for rank in finding.ranks if rank not in own)
        return ()

    def _last_place(self, rank: int) -> str | None:
        """Return the place of the last call of a rank that has not reached the open one."""
        entries = self._dumps[rank].entries
        if not entries:
            return None
        last = entries[-1]
        where = f", at {last.place}" if last.place else ""
        return (
            f"its last call is {last.operation} {last.sequence} of group {last.group}, "
            f"{last.state}{where}"
        )


def _damaged(dumps: Mapping[int, Dump]) -> Iterator[RankFinding]:
    for rank, dump in dumps.items():
        if dump.n_damaged:
            message = (
                f"{dump.source.path} is damaged: values of {count(dump.n_damaged, 'call')} are of "
                "the wrong type, and are left out"
            )
            yield RankFinding("damaged rank", message, (rank,), count=dump.n_damaged)


def _facts(entry: Entry) -> tuple[Any, ...]:
    return (
        entry.group,
        entry.sequence,
        entry.operation,
        entry.record,
        entry.state,
        entry.elements,
        entry.data_type,
        entry.created_ns,
        entry.place,
    )


def _firsts(dumps: Iterable[Dump]) -> dict[tuple[str, bool], int]:
    """Return the first sequence number of each group that no rank has overwritten.

    The recorder is a ring buffer: a rank that made more calls has overwritten more of them.
    """
    found: dict[tuple[str, bool], int] = {}
    for dump in dumps:
        own: dict[tuple[str, bool], int] = {}
        for entry in dump.entries:
            own.setdefault((entry.group, entry.peer is not None), entry.sequence)
        for key, first in own.items():
            found[key] = max(found.get(key, 0), first)
    return found


def _with_root(call: OpenCall, every: Sequence[OpenCall]) -> OpenCall:
    """Set `is_root`: whether none of the awaited ranks waits in another open call."""
    others = [it for it in every if it is not call]
    stuck = {rank for it in others for rank in (*it.started, *it.scheduled)}
    is_caught = bool(call.waits_for) and all(rank in stuck for rank in call.waits_for)
    return replace(call, is_root=not is_caught)
