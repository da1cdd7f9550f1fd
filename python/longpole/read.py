"""Reading a trace from a path, from bytes or from an open file."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from longpole._core import read_trace as read_core
from longpole.trace import Trace
from longpole.vocabulary import additions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import BinaryIO

    from longpole.profiles import FoundTimeline

__all__ = ["read_trace"]

_MOST_THREADS: Final = 1_024


def read_trace(
    source: str | os.PathLike[str] | bytes | BinaryIO,
    *,
    args: Literal["ids", "default"] | Sequence[str] = "default",
    vocabulary: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    capture_traces: Sequence[str | os.PathLike[str] | bytes | Trace] | None = None,
    strict: bool = False,
    max_bytes: int | None = None,
    max_events: int | None = None,
    threads: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> Trace:
    """Read a trace of the PyTorch profiler, or of another one.

    Chrome trace events in JSON, as the PyTorch profiler and XProf write them, `xplane.pb` of XProf,
    a trace of Perfetto, an SQLite export of Nsight Systems, a database, JSON or CSV of `rocprofv3`,
    or what `Trace.save` wrote; plain, gzip, zstd or xz. The first bytes tell, not the name. Of an
    Ascend or MindSpore profile also the folder, of an Ascend profile its SQLite database. The file
    is read once, in windows: memory is bounded by the events that are kept. A damaged file gives
    all events that are whole in it, and `Trace.diagnostics` says what was lost or altered.

    Parameters
    ----------
    source
        A path, the bytes themselves, or a binary file object. A folder must hold one
        trace or one Ascend or MindSpore profile.
    args
        Which arguments of events to keep: `"ids"` for those that say what belongs
        together, `"default"` for these and what one asks about kernels, operators and
        collectives, or a list of names for the ids and those.
    vocabulary
        A TOML file (or its content) with regular expressions for names that longpole does not
        know, such as those of the kernels of one's own collectives. The page on formats has
        an example.
    capture_traces
        Traces of the captures of CUDA graphs that this trace replays: what to read, or traces. By
        default `X.capture.json.gz` or `X.capture.json` beside `X.json.gz` or `X.json`, which is
        read when it is asked for.
        `Trace.graph_nodes` and `longpole.graph_kernels` name operators of replayed kernels by them.
    strict
        Raise on the first finding instead of recovering; the file must be JSON as in
        RFC 8259.
    max_bytes, max_events
        Stop there; `Trace.diagnostics` then holds `limit_reached`.
    threads
        How many threads read the events of a large file, the calling one among them, which also
        reads and inflates it: all cores by default. The trace is the same.
    progress
        Called now and then with the number of bytes read (uncompressed). What it
        raises ends the reading.

    Raises
    ------
    TraceError
        The source holds no trace, or (strict) is not sound, or is a saved trace that is damaged
        or lacks what is asked for. It has `code`, `offset`
        (the byte of the uncompressed file), `hint` and `path`.
    OSError
        The file cannot be opened or read.
    ValueError
        `threads` is not from 1 to 1024, or the vocabulary has a section, meaning or pattern that
        cannot be; the message names those that can.

    Examples
    --------
    >>> trace = read_trace("rank0.json.gz")  # doctest: +SKIP
    >>> trace.status  # doctest: +SKIP
    'ok'
    """
    if threads is not None and not 1 <= threads <= _MOST_THREADS:
        message = f"threads is from 1 to {_MOST_THREADS}, not {threads}"
        raise ValueError(message)
    how: dict[str, Any] = {"vocabulary": vocabulary, "strict": strict, "threads": threads}
    if capture_traces is None:
        captures = partial(_beside, source, how)
    else:
        captures = partial(tuple, [_capture(each, how) for each in capture_traces])
    found = _timeline(source)
    core = read_core(
        source if found is None else found.source,
        args=args if isinstance(args, str) else list(args),
        vocabulary=additions(vocabulary),
        strict=strict,
        max_bytes=max_bytes,
        max_events=max_events,
        threads=threads,
        progress=progress,
    )
    if found is not None:
        return Trace(core, found.path, found.rank, captures)
    path = source if isinstance(source, str | os.PathLike) else None
    return Trace(core, path, captures=captures)


def _capture(source: str | os.PathLike[str] | bytes | Trace, how: Mapping[str, Any]) -> Trace:
    return source if isinstance(source, Trace) else read_trace(source, capture_traces=(), **how)


def _beside(source: object, how: Mapping[str, Any]) -> tuple[Trace, ...]:
    """Read the trace of a capture that lies beside a trace, if one does."""
    if not isinstance(source, str | os.PathLike):
        return ()
    from longpole.profiles import captures_of

    return tuple(_capture(found, how) for found in captures_of(Path(source))[:1])


def _timeline(source: str | os.PathLike[str] | bytes | BinaryIO) -> FoundTimeline | None:
    """Find the timeline of a profile; None where the source is read as it is."""
    if not isinstance(source, str | os.PathLike):
        return None
    from longpole.profiles import timeline_of

    return timeline_of(Path(source))
