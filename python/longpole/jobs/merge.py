"""Writes the ranks of a run as one Perfetto trace on a common clock, with the critical path."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from longpole._core import merged_path
from longpole.files.writing import new_file
from longpole.words.wording import short_name

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    import polars as pl

    from longpole._core import JointRanks
    from longpole.jobs.trace_set import TraceSet
    from longpole.trace.trace import Trace

_ENDINGS: Final = (".perfetto-trace", ".perfetto-trace.gz")
_WIDEST: Final = 120


@dataclass(frozen=True, slots=True)
class Merged:
    """The counts of events and segments that were written."""

    output: Path
    n_bytes: int
    n_ranks: int
    n_segments: int
    """Number of segments of the path across ranks."""


def merge(
    traces: TraceSet,
    output: str | os.PathLike[str],
    *,
    force: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Merged:
    """Write the ranks as one trace for ui.perfetto.dev.

    All times are on the clock of the first rank. The critical path across ranks is a process of its
    own, with an arrow from each segment to the next. One trace is read at a time.

    Parameters
    ----------
    traces
        From `read_traces`.
    output
        A file name ending in `.perfetto-trace`, or in `.perfetto-trace.gz` to compress the file.
    force
        Replace the file if it exists. The traces themselves are never replaced.
    progress
        Called with the number of ranks written and the total number.

    Raises
    ------
    FileExistsError
        The file exists and `force` is not given, or it is one of the traces.
    ValueError
        The file name has another ending.

    Examples
    --------
    >>> merge(read_traces("traces/"), "run.perfetto-trace")  # doctest: +SKIP
    """
    path = Path(output)
    if not path.name.endswith(_ENDINGS):
        message = f"{path}: the name of the file must end in {' or '.join(_ENDINGS)}"
        raise ValueError(message)
    inputs = [Path(name) for name in traces.ranks["path"] if Path(name).exists()]
    with new_file(path, force=force, inputs=inputs) as unfinished, unfinished.open("wb") as file:
        if path.suffix == ".gz":
            # No name and no time of writing: the same traces give the same bytes.
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                n_segments = _write(traces, packed, progress)
        else:
            n_segments = _write(traces, file, progress)
    return Merged(path, path.stat().st_size, len(traces), n_segments)


def _write(
    traces: TraceSet,
    file: BinaryIO | gzip.GzipFile,
    progress: Callable[[int, int], object] | None,
) -> int:
    path = traces.path()
    # Perfetto does not show negative times; clocks that count from a start can be shifted there.
    earlier_ns = min(traces.run_ns[0], 0)
    rows = path.select("rank", "start_ns", "end_ns", "kind", "name").iter_rows()
    file.write(
        merged_path(
            [
                (rank, start - earlier_ns, end - earlier_ns, kind, _title(kind, name))
                for rank, start, end, kind, name in rows
            ]
        )
    )
    for place, rank in enumerate(traces.rank_numbers):
        file.writelines(_rank(traces, place, rank, earlier_ns))
        if progress is not None:
            progress(place + 1, len(traces))
    return path.height


def _rank(traces: TraceSet, place: int, rank: int, earlier_ns: int) -> list[bytes]:
    import polars as pl

    trace = traces.trace(rank)
    own = traces.members.filter(pl.col("rank") == rank).select("event", "call")
    host = traces.ranks["host"][place]
    joint: JointRanks = traces.joint
    return joint.merged_rank(
        trace.core,
        place,
        number=rank,
        title=f"rank {rank}" + (f" on {host}" if host else ""),
        lanes=_lane_names(trace),
        calls=dict(own.iter_rows()),
        earlier_ns=earlier_ns,
    )


def _title(kind: str, name: str | None) -> str:
    shown = kind.replace("_", " ")
    return f"{shown}: {short_name(name, _WIDEST)}" if name else shown


def _lane_names(trace: Trace) -> list[str]:
    lanes: pl.DataFrame = trace.lanes.sort("lane")
    return [
        f"device {row['device']}, stream {row['stream']}"
        if row["stream"] is not None
        else str(row["label"] or f"thread {row['thread']}")
        for row in lanes.iter_rows(named=True)
    ]
