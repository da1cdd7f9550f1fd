"""Reading the ranks of a run and joining them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from longpole.jobs.engines import TIMEOUT_S
from longpole.jobs.reading import Reading, read_ranks
from longpole.jobs.sources import find_sources
from longpole.jobs.trace_set import TraceSet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.jobs.engines import Engine
    from longpole.trace.trace import Trace


def read_traces(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    workers: int | None = None,
    engine: Engine = "threads",
    timeout_s: float = TIMEOUT_S,
    data_load: str | None = None,
    step_name: str | None = None,
    vocabulary: str | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> TraceSet:
    """Read the traces of several ranks of one run.

    Each trace is read, reduced to the events that affect other ranks, and dropped: at most
    `workers` traces are in memory at once. A rank that cannot be read is reported in
    `TraceSet.findings` and left out.

    Parameters
    ----------
    sources
        A directory, a glob pattern, or a list of files. Addresses such as `s3://bucket/run` are
        opened by fsspec.
    workers
        How many traces to read at once; by default one per CPU, at most four.
    engine
        `threads` of this process, or `ray`: workers of the cluster at `RAY_ADDRESS` or already
        joined, else of one started on this machine. One of these may die without the others, and
        no trace is read in this process.
    timeout_s
        With `ray`: if the cluster finishes no rank within this time, the remaining ranks are
        reported in `TraceSet.findings`, and the others are analysed.
    data_load, step_name
        As for `Trace.critical_path`.
    vocabulary
        As for `read_trace`.
    progress
        Called with the number of files read and the total number.

    Raises
    ------
    RanksError
        There is no trace, none can be read, or Ray does not start.
    MissingDependencyError
        Ray or fsspec is needed and not installed.

    Examples
    --------
    >>> ranks = read_traces("traces/")  # doctest: +SKIP
    >>> ranks.late_ranks()[0].sentence  # doctest: +SKIP
    """
    found = find_sources(sources)
    reading = Reading(vocabulary, data_load, step_name)
    n_workers = workers or min(4, os.cpu_count() or 1)
    ranks = read_ranks(
        found, reading, engine=engine, workers=n_workers, timeout_s=timeout_s, progress=progress
    )
    return TraceSet(ranks, reading, engine=engine, workers=n_workers, timeout_s=timeout_s)


def join_traces(traces: Sequence[tuple[str, Trace]], *, step_name: str | None = None) -> TraceSet:
    """Join the ranks of traces in memory, each with the path it was read from.

    Raises
    ------
    RanksError
        There is no trace.
    """
    sources = find_sources([path for path, _ in traces])
    opened = dict(traces)
    reading = Reading(step_name=step_name)
    read = [reading.reduce(source, opened[source.path]) for source in sources]
    return TraceSet(read, reading, workers=len(read), kept=opened)
