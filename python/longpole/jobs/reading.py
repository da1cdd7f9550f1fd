"""Reads ranks and reduces each to the events that affect other ranks.

Only the reduced rank is kept; the trace itself is dropped by the worker that read it. Each later
question about a trace is a separate function, so that any worker can answer it.
"""

from __future__ import annotations

import copyreg
import ctypes
import re
import sys
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longpole._core import (
    ReducedRank,
    expand_hops,
    reduce_rank,
    unpack_rank,
)
from longpole.errors import RanksError, TraceError, WindowError
from longpole.formats.read import read_trace
from longpole.jobs.engines import Lost, run
from longpole.jobs.sources import file_system, is_address
from longpole.rows.frames import frame_of
from longpole.trace.removed_cost import removed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import polars as pl

    from longpole._core import Trace as CoreTrace
    from longpole.files.damage import Damage
    from longpole.jobs.engines import Engine
    from longpole.jobs.sources import RankSource
    from longpole.trace.trace import Trace

_Parts = tuple[Any, ...]
TaskWait = tuple[int, int, int, int | None, int | None]
"""A collective of a rank: event, waiting ns, transfer ns, awaited peer, and ns waited for it."""


@dataclass(frozen=True, slots=True)
class Change:
    """A rank to reduce again, and the changes to apply."""

    path: str
    rank: int | None
    changes: Sequence[_Parts] = ()
    scalings: Sequence[_Parts] = ()
    is_as_recorded: bool = True
    """Whether its times are as recorded, not those without the profiler."""
    step_time_ns: int | None = None
    """The time of a step without the profiler, if given."""


@dataclass(frozen=True, slots=True)
class PathSection:
    """What to expand for a rank on the path: its sections, and the names of some events."""

    path: str
    hops: Sequence[tuple[int | None, int]]
    events: Sequence[int]
    clock: tuple[int, float, int]
    """Offset, drift and origin that convert its times to the common clock."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """The expanded sections: per segment its section, common times and facts; names by event."""

    segments: pl.DataFrame
    names: dict[int, str | None]


@dataclass(frozen=True, slots=True)
class Reading:
    """Options for reading the ranks."""

    vocabulary: str | None = None
    data_load: str | None = None
    step_name: str | None = None

    def open(self, path: str) -> Trace:
        """Read one rank in a single thread, since other ranks are read at the same time."""
        if not is_address(path):
            return read_trace(path, vocabulary=self.vocabulary, threads=1)
        files, name = file_system(path)
        with files.open(name, "rb") as file:
            return read_trace(file, vocabulary=self.vocabulary, threads=1)

    def read(self, source: RankSource) -> ReadRank:
        """Read and reduce one file; errors are part of the result."""
        try:
            read = self.reduce(source, self.open(source.path))
        except (TraceError, WindowError, OSError) as error:
            is_trace = getattr(error, "code", None) != "no_trace_events"
            problem = (getattr(error, "strerror", None) or str(error)).replace("\nhint: ", "; ")
            problem = re.sub(r" \(os error \d+\)$", "", problem)
            read = ReadRank(source, problem=problem, is_trace=is_trace)
        give_back_memory()
        return read

    def reduce(self, source: RankSource, trace: Trace) -> ReadRank:
        """Reduce a trace as observed."""
        rank = source.named_rank if trace.rank is None else trace.rank
        reduced = self.reduced(trace, Change(source.path, rank))
        base_ns = trace.base_time_ns or 0
        return ReadRank(
            source,
            reduced=reduced,
            predicted=self.predicted(trace, Change(source.path, rank, is_as_recorded=False)),
            span_ns=(reduced.window[0] + base_ns, reduced.window[1] + base_ns),
            n_events=trace.n_events,
            n_bytes=trace.n_bytes,
            is_recovered=trace.status == "recovered",
            damage=trace.damage,
            waits=[_wait(row) for row in trace.core.collective_waits().to_dicts()],
            device=_device(trace),
        )

    def change(self, change: Change) -> ReducedRank | None:
        """Read a rank again, and reduce it with changes applied.

        None if it is asked without the profiler, and what recording cost is unknown.
        """
        return self.changed(self.open(change.path), change)

    def changed(self, trace: Trace, change: Change) -> ReducedRank | None:
        """Reduce a rank with changes applied, as recorded or without the profiler."""
        is_as_recorded = change.is_as_recorded
        return self.reduced(trace, change) if is_as_recorded else self.predicted(trace, change)

    def predicted(self, trace: Trace, change: Change) -> ReducedRank | None:
        """Reduce a rank without the profiler; None if what recording cost is unknown."""
        asked = (change.step_time_ns, self.step_name, self.data_load)
        core, cost = removed(trace.as_recorded.core, *asked)
        return None if cost["status"] == "unknown" else self._reduced(core, change)

    def expand(self, section: PathSection) -> Expanded:
        """Reopen a rank on the path and return its segments."""
        return self.expanded(self.open(section.path), section)

    def reduced(self, trace: Trace, change: Change) -> ReducedRank:
        """Reduce a rank, as observed or with changes applied."""
        return self._reduced(trace.core, change)

    def _reduced(self, core: CoreTrace, change: Change) -> ReducedRank:
        return reduce_rank(
            core,
            rank=change.rank,
            data_load=self.data_load,
            step_name=self.step_name,
            changes=list(change.changes),
            scalings=list(change.scalings),
        )

    def expanded(self, trace: Trace, section: PathSection) -> Expanded:
        """Return the segments of the given sections of the path, on the common clock."""
        hops = list(section.hops)
        segments = expand_hops(trace.core, hops, section.clock, data_load=self.data_load)
        names = trace.core.event_names(list(section.events))
        return Expanded(frame_of(segments), dict(zip(section.events, names, strict=True)))


@dataclass(frozen=True, slots=True)
class ReadRank:
    """The result of reading one file: the reduced rank, or why it could not be read."""

    source: RankSource
    reduced: ReducedRank | None = None
    predicted: ReducedRank | None = None
    """The rank without the profiler; None if what recording cost is unknown."""
    span_ns: tuple[int, int] = (0, 0)
    """Start and end of the recording, in ns since 1970 if the file contains its base."""
    n_events: int = 0
    n_bytes: int = 0
    is_recovered: bool = False
    damage: Damage | None = None
    problem: str | None = None
    is_trace: bool = True
    """Whether the file is a trace, not JSON of another kind."""
    waits: Sequence[TaskWait] = ()
    """Recorded waiting inside its collectives, if the profile shows their tasks."""
    device: tuple[int | None, str | None] = (None, None)
    """Number and name of the device that it works on; None if unknown, or of several."""

    @property
    def rank(self) -> int | None:
        """Rank of the trace; None if it was not read or is not known."""
        return None if self.reduced is None else self.reduced.rank

    @property
    def world_size(self) -> int | None:
        """The number of ranks that the file declares."""
        return None if self.reduced is None else self.reduced.world_size


def read_ranks(
    sources: Sequence[RankSource],
    reading: Reading,
    *,
    engine: Engine,
    workers: int,
    timeout_s: float,
    progress: Callable[[int, int], object] | None,
) -> list[ReadRank]:
    """Read and reduce every file, at most `workers` at once; return the results in file order."""
    found = run(
        engine, reading.read, sources, workers=workers, timeout_s=timeout_s, progress=progress
    )
    return [
        ReadRank(source, problem=it.reason) if isinstance(it, Lost) else it
        for source, it in zip(sources, found, strict=True)
    ]


def give_back_memory() -> None:
    """Return the memory of dropped traces to the operating system.

    glibc keeps freed memory in pieces too small for the next trace: reading eight ranks in turn
    took a third more memory than reading one.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:  # not in other C libraries
            trim(0)


def _device(trace: Trace) -> tuple[int | None, str | None]:
    """Return number and name of the only device with activities."""
    used = trace.devices.filter(trace.devices["count"] > 0)
    if used.height != 1:
        return None, None
    number, name = used.select("device", "name").row(0)
    return number, name


def _wait(row: Mapping[str, Any]) -> TaskWait:
    event, waiting_ns, moving_ns = row["event"], row["waiting_ns"], row["moving_ns"]
    return event, waiting_ns, moving_ns, row["awaited_peer"], row["awaited_ns"]


def _unpacked(packed: bytes) -> ReducedRank:
    return unpack_rank(packed)


copyreg.pickle(ReducedRank, lambda rank: (_unpacked, (rank.pack(),)))


# Reopens reduced ranks, to list the path in them and to solve them with changes applied.


class OpenRanks:
    """The files of the ranks, reopened in the workers of the engine.

    With threads, the most recent traces are kept, as many as there are workers.
    """

    def __init__(
        self,
        files: Sequence[str],
        reading: Reading,
        *,
        engine: Engine,
        workers: int,
        timeout_s: float,
        kept: Mapping[str, Trace],
    ) -> None:
        self.files = files
        self.reading = reading
        self._engine: Engine = engine
        self._workers = workers
        self._timeout_s = timeout_s
        self._places = {path: place for place, path in enumerate(files)}
        self._open = OrderedDict((self._places[path], trace) for path, trace in kept.items())
        self._lock = threading.Lock()

    def trace(self, place: int) -> Trace:
        """Read a rank into this process."""
        with self._lock:
            found = self._open.pop(place, None)
            if found is None:
                while len(self._open) >= self._workers:
                    self._open.popitem(last=False)
                    give_back_memory()
                found = self.reading.open(self.files[place])
            self._open[place] = found
            return found

    def reduced(self, changes: Sequence[Change]) -> list[ReducedRank | None]:
        """Reduce ranks again, with changes applied; see `Reading.change`."""
        if self._engine == "threads":
            return [
                self.reading.changed(self.trace(self._places[change.path]), change)
                for change in changes
            ]
        return self._run(self.reading.change, changes)

    def expanded(self, sections: Mapping[int, PathSection]) -> Mapping[int, Expanded]:
        """Return the segments of the path in some ranks, by rank index."""
        if self._engine == "threads":
            return {
                place: self.reading.expanded(self.trace(place), section)
                for place, section in sections.items()
            }
        found = self._run(self.reading.expand, list(sections.values()))
        return dict(zip(sections, found, strict=True))

    def _run(self, work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        found = run(self._engine, work, items, workers=self._workers, timeout_s=self._timeout_s)
        for item, result in zip(items, found, strict=True):
            if isinstance(result, Lost):
                message = f"{item.path} cannot be read again: {result.reason}"
                raise RanksError(message)
        return found
