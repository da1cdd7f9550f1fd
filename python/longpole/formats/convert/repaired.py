"""Writes everything readable in a damaged trace as a valid one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from longpole._core import repair_trace
from longpole.files.writing import new_file
from longpole.formats.profiles import timeline_of

if TYPE_CHECKING:
    import os


def repair(
    source: str | os.PathLike[str], output: str | os.PathLike[str], *, force: bool = False
) -> int:
    """Write every readable event of a trace to a valid JSON file.

    A trace in another format than JSON, such as Perfetto, is written in the form of Kineto.

    Reading the new file returns the same tables: invalid UTF-8 is replaced, words that are not
    numbers are null, and the fields of the header follow the events. Only the positions of events
    change. The file also records what was lost: reading it reports the same losses.

    Parameters
    ----------
    source
        The file of the trace, also compressed, or a profile folder or database with one timeline.
        The rank in a profile's names is written too.
    output
        The file to write, as gzip if its name ends in `.gz`.
    force
        Replace the file if it exists.

    Returns
    -------
    int
        Number of events written.

    Raises
    ------
    FileExistsError
        The file exists and `force` is not given, or it is the source, or a file in it.
    TraceError
        The source contains no trace.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from longpole import read_trace
    >>> with TemporaryDirectory() as folder:
    ...     cut = Path(folder, "cut.json")
    ...     _ = cut.write_text('[{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":2},{"ph":"X"')
    ...     n_written = repair(cut, Path(folder, "whole.json"))
    ...     n_written, read_trace(Path(folder, "whole.json")).diagnostics["code"].to_list()
    (1, ['truncated'])
    """
    path, target = Path(source), Path(output)
    found = timeline_of(path)
    with new_file(target, force=force, inputs=[path, found.path or path]) as unfinished:
        is_packed = target.suffix == ".gz"
        n_written = repair_trace(found.source, unfinished, gzip=is_packed, rank=found.rank)
        if n_written is not None:
            return n_written
        # A bare list of events has no field to record losses in.
        found = timeline_of(path)
        return cast(
            "int",
            repair_trace(found.source, unfinished, gzip=is_packed, rank=found.rank, as_object=True),
        )
