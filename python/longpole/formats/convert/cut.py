"""A smaller trace: the events of a window, copied unchanged from the file."""

from __future__ import annotations

import gzip
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from longpole._core import Cut
from longpole.files.damage import source_losses
from longpole.files.writing import new_file
from longpole.formats.convert.repaired import repair
from longpole.formats.profiles import timeline_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    import numpy as np
    import polars as pl

    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace

_PART: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"
_OTHER_PACKED: Final = (b"\x28\xb5", b"\xfd7")
"""Magic bytes of zstd and xz, which the core decompresses."""
_NO_JSON: Final = frozenset(
    {
        "perfetto",
        "xplane",
        "nsight-sqlite",
        "rocpd",
        "rpd",
        "rocprofv3-json",
        "rocprofv3-csv",
        "rocprof-csv",
    }
)
"""Formats without Chrome trace events as text; for these, the parsed events are written."""
_ZIP: Final = b"PK"
_BEFORE_TEXT: Final = b"\xef\xbb\xbf \t\r\n"


def cut(
    trace: Trace,
    source: str | PathLike[str],
    window: Window,
    output: str | PathLike[str],
    *,
    force: bool = False,
) -> int:
    """Write the events of a window to a smaller trace, with what its critical path needs.

    In addition to the events that ran in the window, these are the calls that launched its GPU
    activities, everything that these calls launched, the events that enclose the calls, and for a
    step the whole previous step. Other steps lose their annotations, so that part of a step is not
    mistaken for a whole one. Fields other than the events are copied, and the rank in the file
    names of a profile is added. For databases and binary files, the parsed events are written.

    The trace must have been read from `source`. Returns the number of elements written to the list
    of events. Source and output are as for `repair`.

    Raises
    ------
    FileExistsError
        The file exists and `force` is not given, or it is the source, or a file in it.
    ValueError
        The file is damaged JSON, a saved trace, or not the file that the trace was read from, or
        has separate begin and end events.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from longpole import choose_window, read_trace
    >>> from longpole.testing import TraceBuilder
    >>> with TemporaryDirectory() as folder:
    ...     builder = TraceBuilder().step(1, (0, 50)).step(2, (50, 90)).step(3, (90, 99))
    ...     path = builder.write(Path(folder, "trace.json"))
    ...     trace = read_trace(path)
    ...     cut(trace, path, choose_window(trace, 2), Path(folder, "step2.json"))
    2
    """
    path, target = Path(source), Path(output)
    if trace.format in _NO_JSON:
        return write_tables(trace, target, window, perfetto=False, inputs=[path], force=force)
    _check(trace)
    is_kept = places_kept(trace, window)
    kept, n_kept = Cut(is_kept.tobytes()), int(is_kept[: trace.n_events].sum())
    found = timeline_of(path)
    with new_file(target, force=force, inputs=[path, found.path or path]) as unfinished:
        opened: Any = gzip.open if target.suffix == ".gz" else open
        with opened(unfinished, "wb") as file:
            pieces = (kept.feed(part) for part in _parts(found.source))
            is_told = found.rank is None or "distributedInfo" in trace.metadata
            file.writelines(pieces if is_told else _with_rank(pieces, found.rank))
        if kept.n_written != n_kept:
            message = f"{path} has changed since it was read"
            raise ValueError(message)
    return kept.n_written


def write_tables(
    trace: Trace,
    target: Path,
    window: Window | None,
    *,
    perfetto: bool,
    inputs: list[Path],
    force: bool,
) -> int:
    """Write the parsed events of a trace, or of a window, as Chrome JSON or as a Perfetto trace."""
    kept = None if window is None else places_kept(trace, window).tobytes()
    with new_file(target, force=force, inputs=inputs) as unfinished:
        return trace.core.write(
            unfinished,
            perfetto=perfetto,
            gzip=target.suffix == ".gz",
            rank=trace.rank,
            kept=kept,
        )


def places_kept(trace: Trace, window: Window) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return whether `cut` keeps each position in the list of events."""
    import numpy as np
    import polars as pl

    before = _step_before(trace, window)
    events = trace.events
    is_kept = _events_kept(trace, window, before)
    time_ns = pl.col("time_ns").is_between(_start_ns(before, window), window.end_ns)
    others = [trace.flows, trace.counters, trace.asynchronous]
    outside = (each.filter(~time_ns)["position"] for each in others)
    kept = np.ones(trace.n_events + 1, dtype=np.uint8)
    for positions in (events.filter(~is_kept)["position"], *outside):
        kept[positions.to_numpy()] = 0
    return kept


def _with_rank(pieces: Iterator[bytes], rank: int | None) -> Iterator[bytes]:
    """Insert the rank from folder names at the start of a trace, an object or a list."""
    shown = f'{{"distributedInfo":{{"rank":{rank}}},'.encode()
    begun = (piece.lstrip(_BEFORE_TEXT) for piece in pieces)
    first = next(filter(None, begun), b"")
    is_list = first.startswith(b"[")
    yield shown + (b'"traceEvents":' + first if is_list else first.removeprefix(b"{"))
    yield from pieces
    yield b"}" if is_list else b""


def _check(trace: Trace) -> None:
    import polars as pl

    source = source_losses(trace.metadata)
    # The text of a converted file does not have the records that its source lost.
    before = source.counts if source else {}
    altered = trace.diagnostics.filter(pl.col("severity").is_in(["altered", "data_loss"]))
    for code, count, sentence in altered.select("code", "count", "sentence").iter_rows():
        if count > before.get(code, 0):
            message = f"a damaged trace cannot be cut: {sentence}; write it back whole first"
            raise ValueError(message)
    apart = sorted(set(trace.phases) & {"B", "E"})
    if apart:
        message = (
            f"a trace with separate begin and end events (phases {', '.join(apart)}) cannot be cut"
        )
        raise ValueError(message)


def _step_before(trace: Trace, window: Window) -> pl.DataFrame:
    """Return the previous step, which determines when a step begins; at most one row."""
    import polars as pl

    before = trace.steps.filter(pl.col("window_end_ns") <= window.start_ns)
    return before.sort("window_end_ns").tail(1) if window.kind == "step" else before.clear()


def _events_kept(trace: Trace, window: Window, before: pl.DataFrame) -> pl.Series:
    import polars as pl

    events = trace.events
    start_ns = _start_ns(before, window)
    begins, lasts = events["start_ns"], events["duration_ns"].fill_null(0)
    kept = ((begins <= window.end_ns) & (begins + lasts >= start_ns)).to_numpy().copy()
    launches = trace.launches.filter(pl.col("call").is_not_null())
    work, call = launches["event"].to_numpy(), launches["call"].to_numpy()
    needed = call[kept[work]]
    kept[_with_ancestors(events["parent"], needed)] = True
    kept[work[kept[call]]] = True
    if window.kind == "step":
        whole = [window.step, *before["step"]]
        others = trace.steps.filter(~pl.col("step").is_in(whole))
        kept[others["event"].to_numpy()] = False
    return pl.Series(kept)


def _start_ns(before: pl.DataFrame, window: Window) -> int:
    """Return the time from which events are needed: for a step, the start of the previous step."""
    import polars as pl

    if before.is_empty():
        return window.start_ns
    start_ns: int = before.select(pl.min_horizontal("start_ns", "window_start_ns")).item()
    return start_ns


def _with_ancestors(
    parents: pl.Series, events: np.ndarray[Any, Any]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the given events and all events that enclose them on their threads."""
    import numpy as np
    import polars as pl

    parent = parents.cast(pl.Int64).fill_null(-1).to_numpy()
    found = [np.unique(events.astype(np.int64))]
    while len(found[-1]):
        above = np.unique(parent[found[-1]])
        found.append(above[above >= 0])
    return np.unique(np.concatenate(found))


def _parts(source: str | PathLike[str] | bytes | BinaryIO) -> Iterator[bytes]:
    """Yield the decompressed text of a timeline in chunks."""
    if isinstance(source, str | PathLike):
        yield from _parts_of_file(Path(source))
    elif isinstance(source, bytes):
        yield source
    else:
        yield from iter(lambda: source.read(_PART), b"")


def _parts_of_file(source: Path) -> Iterator[bytes]:
    with source.open("rb") as file:
        magic = file.read(2)
    if magic == _ZIP:
        message = "a saved trace has no text that could be cut; cut the trace it was made from"
        raise ValueError(message)
    if magic in _OTHER_PACKED:
        with TemporaryDirectory() as folder:
            repair(source, unpacked := Path(folder, "trace.json"))
            yield from _parts_of_file(unpacked)
        return
    is_packed = magic == _GZIP
    opened: Any = gzip.open if is_packed else open
    with opened(source, "rb") as file:
        while part := file.read(_PART):
            yield part
