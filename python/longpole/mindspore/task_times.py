"""Runs of operators on an Ascend device, from a text file of older versions.

`output_timeline_data_{rank}.txt`: operator, stream, start and duration, with the units in the
header (the start in ms or us). Timestamps are decimal numbers and are parsed exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.mindspore.text import CsvFile, exact_ns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from longpole.mindspore.findings import Findings

__all__ = ["TaskTime", "read_task_times"]

_NEEDED: Final = {
    "operator": ("op_name",),
    "stream": ("stream_id",),
    "start": ("start_time(ms)", "start_time(us)"),
    "duration": ("duration(ms)", "duration(us)"),
}
_NS_IN: Final = {"(ms)": 1_000_000, "(us)": 1_000}


class TaskTime(NamedTuple):
    """A run of an operator on a stream of the device; both times in nanoseconds."""

    operator: str
    stream: int
    start_ns: int
    duration_ns: int


def read_task_times(path: Path, findings: Findings) -> Iterator[TaskTime]:
    """Yield each run, in file order."""
    file = CsvFile(path, findings)
    file.find(_NEEDED)
    scales = {key: _NS_IN[file.name_of(key)[-4:]] for key in ("start", "duration")}
    for row in file.rows():
        stream = file.stamp(row["stream"])
        start_ns, duration_ns = (_time_ns(row[key], scale) for key, scale in scales.items())
        if start_ns is None or duration_ns is None or stream is None:
            file.report("bad_number", repr(row["start"][:40]))
            continue
        yield TaskTime(row["operator"], stream, start_ns, duration_ns)


def _time_ns(cell: str, scale: int) -> int | None:
    """Parse a time; None in scientific notation, as a spreadsheet writes it, which lost digits."""
    return None if "e" in cell.lower() else exact_ns(cell, scale)
