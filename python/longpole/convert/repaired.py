"""A damaged trace, written back as a sound one with all that could be read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from longpole._core import repair_trace
from longpole.files import new_file
from longpole.profiles import FoundTimeline, timeline_of

if TYPE_CHECKING:
    import os

__all__ = ["repair"]


def repair(
    source: str | os.PathLike[str], output: str | os.PathLike[str], *, force: bool = False
) -> int:
    """Write every event of a trace that can be read to a file of sound JSON.

    A trace that is no JSON, such as one of Perfetto, is written as Kineto would write its tables.

    Reading that file gives the same tables: bytes that are no UTF-8 are replaced, words that are
    no numbers are null, fields of the header stand behind the events. Only the positions of events
    count anew. What was lost stays lost, and the file says so: reading it finds the same losses.

    Parameters
    ----------
    source
        The file of the trace, also compressed, or a profile folder or database that has one
        timeline. The rank that a profile names is written with it.
    output
        The file to write, as gzip where its name ends in `.gz`.
    force
        Replace the file if it exists.

    Returns
    -------
    int
        How many events were written.

    Raises
    ------
    FileExistsError
        The file exists and `force` is not given, or it is the source, or a file in it.
    TraceError
        The source holds no trace.

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
    found = timeline_of(path) or FoundTimeline(path, path)
    with new_file(target, force=force, inputs=[path, found.path]) as unfinished:
        is_packed = target.suffix == ".gz"
        n_written = repair_trace(found.source, unfinished, gzip=is_packed, rank=found.rank)
        if n_written is not None:
            return n_written
        # A bare list of events has no place for what was lost.
        found = timeline_of(path) or found
        return cast(
            "int",
            repair_trace(found.source, unfinished, gzip=is_packed, rank=found.rank, as_object=True),
        )
