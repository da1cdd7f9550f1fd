"""Reads a trace from a path, from bytes or from an open file."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from longpole._core import read_trace as read_core
from longpole.files.vocabulary import additions
from longpole.formats.profiles import captures_of, captures_of_rank, timeline_of
from longpole.trace.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import BinaryIO

    _Traces = tuple[Trace, ...]

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
    """Read a trace of the PyTorch profiler or another profiler.

    The formats are Chrome trace events in JSON (PyTorch profiler, XProf), `xplane.pb` of XProf,
    Perfetto traces, SQLite exports of Nsight Systems, a database, JSON or CSV of `rocprofv3`, and
    files written by `Trace.save`; plain, gzip, zstd or xz. The format is detected by the first
    bytes, not the name. Of an Ascend or MindSpore profile the folder is accepted too, and of an
    Ascend profile its SQLite database. The file is read once, in windows: memory is bounded by the
    events that are kept. From a damaged file all complete events are read, and `Trace.diagnostics`
    says what was lost or altered.

    Parameters
    ----------
    source
        A path, the bytes themselves, or a binary file object. A folder must hold one
        trace or one Ascend or MindSpore profile.
    args
        Event arguments to keep: `"ids"` for those that link events, `"default"` for these and the
        common ones of kernels, operators and collectives, or a list of names to keep in addition to
        the ids.
    vocabulary
        A TOML file (or its content) with regular expressions for names that longpole does not know,
        such as kernels of custom collectives. The page on formats has an example.
    capture_traces
        Traces, or their sources, of the captures of CUDA graphs that this trace replays. By default
        `X.capture.json.gz` or `X.capture.json` next to `X.json.gz` or `X.json`, else those of its
        rank in the folders `capture_traces` or `graph_capture_profile` next to it, as vLLM and
        SGLang write them, read on first use. `Trace.graph_nodes`, `operators`, `modules`,
        `kernels` and `roofline` use them to find the operators of replayed kernels.
    strict
        Raise on the first finding instead of recovering; the file must be JSON as in
        RFC 8259.
    max_bytes, max_events
        Stop reading at this limit; `Trace.diagnostics` then contains `limit_reached`.
    threads
        Number of threads that parse the events of a large file, including the calling thread, which
        also reads and decompresses it. By default the number of cores. The resulting trace is the
        same.
    progress
        Called periodically with the number of uncompressed bytes read. If it raises, reading ends.

    Raises
    ------
    TraceError
        The source contains no trace, or is not well-formed (with `strict`), or is a saved trace
        that is damaged or lacks the requested arguments. The error has `code`, `offset` (the byte
        of the uncompressed file), `hint` and `path`.
    OSError
        The file cannot be opened or read.
    ValueError
        `threads` is not from 1 to 1024, or the vocabulary has an invalid section, meaning or
        pattern; the message lists the valid ones.

    Examples
    --------
    >>> trace = read_trace("rank0.json.gz")  # doctest: +SKIP
    >>> trace.status  # doctest: +SKIP
    'ok'
    """
    if threads is not None and not 1 <= threads <= _MOST_THREADS:
        message = f"threads is from 1 to {_MOST_THREADS}, not {threads}"
        raise ValueError(message)
    read = partial(
        read_trace, vocabulary=vocabulary, capture_traces=(), strict=strict, threads=threads
    )
    given = [it if isinstance(it, Trace) else read(it) for it in capture_traces or ()]
    captures = (lambda _: tuple(given)) if capture_traces is not None else None
    found = timeline_of(source)
    core = read_core(
        found.source,
        args=args if isinstance(args, str) else list(args),
        vocabulary=additions(vocabulary),
        strict=strict,
        max_bytes=max_bytes,
        max_events=max_events,
        threads=threads,
        progress=progress,
    )
    return Trace(core, found.path, found.rank, captures or partial(_captures_beside, source, read))


def _captures_beside(source: object, read: Callable[[Path], Trace], trace: Trace) -> _Traces:
    """Read the traces of captures next to a trace: those of its rank, and of its batch sizes."""
    found = captures_of(Path(source)) if isinstance(source, str | os.PathLike) else []
    if not found:
        return ()
    from longpole.trace.captures import needed_captures

    needed = needed_captures(trace, captures_of_rank(found, trace.rank))
    return tuple(map(read, needed))
