"""Reads ranks and reduces each to what the others can feel.

Only what is left of a trace is kept; the trace itself is dropped by its thread.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longpole._core import reduce_rank
from longpole.errors import TraceError, WindowError
from longpole.read import read_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole._core import ReducedRank
    from longpole.trace import Trace
    from longpole.traces.sources import RankSource

__all__ = ["ReadRank", "Reading", "read_one", "read_ranks"]


@dataclass(frozen=True, slots=True)
class Reading:
    """How the ranks are read."""

    vocabulary: str | None = None
    data_load: str | None = None
    step_name: str | None = None

    def open(self, path: str) -> Trace:
        """Read one rank."""
        return read_trace(path, vocabulary=self.vocabulary)

    def reduce(
        self,
        trace: Trace,
        rank: int | None,
        changes: Sequence[tuple[Any, ...]] = (),
        scalings: Sequence[tuple[Any, ...]] = (),
    ) -> ReducedRank:
        """Reduce one rank, as observed or after changes."""
        return reduce_rank(
            trace.core,
            rank=rank,
            data_load=self.data_load,
            step_name=self.step_name,
            changes=list(changes),
            scalings=list(scalings),
        )


@dataclass(frozen=True, slots=True)
class ReadRank:
    """What became of one file: the rank, reduced, or why it could not be read."""

    source: RankSource
    reduced: ReducedRank | None = None
    n_events: int = 0
    n_bytes: int = 0
    is_recovered: bool = False
    problem: str | None = None


def read_ranks(
    sources: Sequence[RankSource],
    reading: Reading,
    *,
    workers: int,
    progress: Callable[[int, int], object] | None,
) -> list[ReadRank]:
    """Read and reduce every file, at most `workers` at once; the result is in their order."""
    found: list[ReadRank] = []
    with ThreadPoolExecutor(max_workers=workers) as pool:
        for rank in pool.map(lambda source: read_one(source, reading), sources):
            found.append(rank)
            if progress is not None:
                progress(len(found), len(sources))
    return found


def read_one(source: RankSource, reading: Reading) -> ReadRank:
    """Read and reduce one file; what is wrong with it is part of the answer."""
    try:
        trace = reading.open(source.path)
        rank = source.named_rank if trace.rank is None else trace.rank
        reduced = reading.reduce(trace, rank)
    except (TraceError, WindowError, OSError) as error:
        return ReadRank(source, problem=str(error))
    return ReadRank(
        source,
        reduced=reduced,
        n_events=trace.n_events,
        n_bytes=trace.n_bytes,
        is_recovered=trace.status == "recovered",
    )
