"""Writes a trace for Perfetto that reads back as the same tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from longpole.formats.convert.cut import write_tables

if TYPE_CHECKING:
    import os

    from longpole.engine.windows import Window
    from longpole.trace.trace import Trace


def write_perfetto(
    trace: Trace,
    output: str | os.PathLike[str],
    window: Window | None = None,
    *,
    inputs: list[Path] | None = None,
    force: bool = False,
) -> int:
    """Write a trace, or the events of a window as in `cut`, for Perfetto.

    Reading the file returns the same tables, except for the positions of events and the counts of
    statements about processes and threads. Arguments that were not read are not written.

    Parameters
    ----------
    trace
        The trace.
    output
        The file to write, as gzip if its name ends in `.gz`.
    window
        A part of the trace; None for all of it.
    inputs
        The files of the trace, which must not be overwritten.
    force
        Replace the file if it exists.

    Returns
    -------
    int
        Number of events, flow ends, counter samples and statements written.

    Raises
    ------
    FileExistsError
        The file exists and `force` is not given, or it is one of `inputs`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from longpole import read_trace
    >>> from longpole.testing import TraceBuilder
    >>> with TemporaryDirectory() as folder:
    ...     trace = read_trace(TraceBuilder().step(1, (0, 50)).write(Path(folder, "trace.json")))
    ...     path = Path(folder, "trace.perfetto-trace")
    ...     write_perfetto(trace, path), read_trace(path).events["name"].to_list()
    (1, ['ProfilerStep#1'])
    """
    return write_tables(
        trace, Path(output), window, perfetto=True, inputs=inputs or [], force=force
    )
