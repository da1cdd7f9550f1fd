"""Execution traces of several ranks: paired with their Kineto traces, linked and written.

`TraceSet` determines which calls of the ranks belong together; nothing is matched here.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from longpole.errors import PairError
from longpole.files.opening import entries
from longpole.files.writing import new_file
from longpole.formats.convert.chakra import write_chakra
from longpole.formats.convert.execution_trace import link_execution_trace, read_execution_trace
from longpole.formats.read import read_trace
from longpole.jobs.joining import read_traces
from longpole.jobs.sources import find_sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from longpole.formats.convert.execution_trace import LinkedTrace
    from longpole.jobs.trace_set import TraceSet
    from longpole.trace.trace import Trace

    Sources = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_SUFFIXES: Final = (".json", ".json.gz")


@dataclass(frozen=True, slots=True)
class RankPair:
    """The two files of one rank, and how they were paired."""

    rank: int
    execution: str
    kineto: str
    paired_by: Literal["process", "rank"]
    """`process`: both contain the same process id; `rank`: both file names contain the same
    rank."""


def link_ranks(executions: Sources, kinetos: Sources) -> LinkedRanks:
    """Pair the execution traces and the Kineto traces of the ranks of one run.

    Parameters
    ----------
    executions, kinetos
        For each, a directory, a glob pattern or a list of files.

    Raises
    ------
    PairError
        A file has no counterpart, or more than one.
    LongpoleError
        There are no files, or no trace can be read.

    Examples
    --------
    >>> ranks = link_ranks("et*.json", "kineto*.json")  # doctest: +SKIP
    >>> ranks.write_chakra("graphs/")  # doctest: +SKIP
    """
    paths = [source.path for source in find_sources(kinetos)]
    return LinkedRanks(_paired(executions, paths), read_traces(paths))


class LinkedRanks:
    """The ranks of one run, each with its two files. One pair is in memory at a time."""

    def __init__(self, pairs: Sequence[RankPair], traces: TraceSet) -> None:
        self.pairs = tuple(sorted(pairs, key=lambda pair: pair.rank))
        self.traces = traces
        self._nodes: dict[int, pl.DataFrame] = {}
        self._groups: dict[str, list[int]] = {}

    def link(self, rank: int) -> LinkedTrace:
        """Link the two files of one rank.

        Raises
        ------
        KeyError
        The rank does not exist.
        PairError
        The two files do not belong together.
        """
        pair = {pair.rank: pair for pair in self.pairs}[rank]
        linked = link_execution_trace(pair.execution, pair.kineto)
        self._nodes[rank] = linked.collectives.select("node", "event")
        self._groups |= _groups_of(linked.trace)
        return linked

    @cached_property
    def collectives(self) -> pl.DataFrame:
        """One row per call of several ranks and rank, with its `node`.

        Columns: `call`, `rank`, `node`, `group`, `sequence`, `operation`, `bytes`, `matched_by`,
        `n_missing` (ranks whose call was not found), `arrival_ns` (on the common clock),
        `wait_ns` (for the last rank) and `transfer_ns`; see `TraceSet.calls`.
        """
        import polars as pl

        self._link_all()
        nodes = [
            nodes.with_columns(rank=pl.lit(rank, pl.Int64)) for rank, nodes in self._nodes.items()
        ]
        members = self.traces.members.join(pl.concat(nodes), on=["rank", "event"], how="left")
        return (
            members.join(self.traces.calls.drop("wait_ns", "transfer_ns"), on="call")
            .select(
                "call",
                "rank",
                "node",
                "group",
                "sequence",
                "operation",
                "bytes",
                "matched_by",
                "n_missing",
                "arrival_ns",
                "wait_ns",
                "transfer_ns",
            )
            .sort("call", "rank")
        )

    @property
    def groups(self) -> dict[str, list[int]]:
        """Ranks of each process group by group name, as recorded in the traces."""
        self._link_all()
        return dict(sorted(self._groups.items()))

    def write_chakra(
        self,
        directory: str | os.PathLike[str],
        *,
        prefix: str = "rank",
        gaps: bool = True,
        overwrite: bool = False,
    ) -> list[Path]:
        """Write `PREFIX.RANK.et` for each rank, and `PREFIX.groups.json`.

        The last file holds the ranks of each process group in the form of ASTRA-sim's
        `--comm-group-configuration`.

        Raises
        ------
        FileExistsError
            One of the files exists and `overwrite` is not set.
        """
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        written = [folder / f"{prefix}.{pair.rank}.et" for pair in self.pairs]
        for pair, path in zip(self.pairs, written, strict=True):
            write_chakra(self.link(pair.rank), path, gaps=gaps, overwrite=overwrite)
        groups = folder / f"{prefix}.groups.json"
        with new_file(groups, force=overwrite) as unfinished:
            unfinished.write_text(json.dumps(self.groups), encoding="utf-8")
        return [*written, groups]

    def _link_all(self) -> None:
        for pair in self.pairs:
            if pair.rank not in self._nodes:
                self.link(pair.rank)


def _paired(executions: Sources, kinetos: Sequence[str]) -> list[RankPair]:
    """Pair files by the process id in both, else by the rank in their names."""
    sources = find_sources(_executions(executions, kinetos))
    by_pid: dict[str, list[str]] = {}
    ranks: dict[str, int | None] = {}
    for path in kinetos:
        trace = read_trace(path, args="ids")
        ranks[path] = trace.rank
        for process in trace.events["process"].unique().cast(str).to_list():
            by_pid.setdefault(str(process), []).append(path)
    named = {source.named_rank: source.path for source in find_sources(list(kinetos))}
    pairs = []
    for place, source in enumerate(sources):
        found = by_pid.get(str(read_execution_trace(source.path).pid), [])
        number = source.named_rank
        kineto = found[0] if len(found) == 1 else (None if number is None else named.get(number))
        if kineto is None:
            message = f"{source.path}: no Kineto trace of its process or rank"
            raise PairError(message)
        number = number if ranks[kineto] is None else ranks[kineto]
        by: Literal["process", "rank"] = "process" if len(found) == 1 else "rank"
        pairs.append(RankPair(place if number is None else number, source.path, kineto, by))
    _check_once(pairs, kinetos)
    return pairs


def _executions(executions: Sources, kinetos: Sequence[str]) -> Sources:
    """List the execution traces: of a directory, the files that are not Kineto traces."""
    if not isinstance(executions, str | os.PathLike) or not Path(executions).is_dir():
        return executions
    taken = {Path(path).resolve() for path in kinetos}
    files = [path for path in entries(executions) if path.name.endswith(_SUFFIXES)]
    return [path for path in files if path.is_file() and path.resolve() not in taken]


def _check_once(pairs: Sequence[RankPair], kinetos: Sequence[str]) -> None:
    """Raise if a Kineto trace has no execution trace, or several."""
    taken = [pair.kineto for pair in pairs]
    for path in kinetos:
        if taken.count(path) != 1:
            some = "several execution traces" if path in taken else "no execution trace"
            message = f"{path}: {some} of its process or rank"
            raise PairError(message)


def _groups_of(trace: Trace) -> dict[str, list[int]]:
    """Read the ranks of process groups from the metadata of the file, then from its calls."""
    known = trace.collectives.select("group", "group_ranks").drop_nulls().unique()
    found = {
        str(group): [int(rank) for rank in str(ranks).split()] for group, ranks in known.iter_rows()
    }
    distributed = trace.metadata.get("distributedInfo")
    listed = distributed.get("pg_config") if isinstance(distributed, dict) else None
    for group in listed if isinstance(listed, list) else []:
        if isinstance(group, dict) and isinstance(group.get("ranks"), list):
            members = [rank for rank in group["ranks"] if isinstance(rank, int)]
            # a group of all ranks may list none
            found[str(group.get("pg_name"))] = members or list(range(trace.world_size or 0))
    return found
