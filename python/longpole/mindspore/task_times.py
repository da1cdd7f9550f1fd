"""When each operator ran on an Ascend device, as older versions wrote it to a text file.

`output_timeline_data_{rank}.txt`: operator, stream, start and duration, with the units in the
header (the start in ms or us). Stamps are decimal numbers and are read exactly.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.mindspore.text import CsvFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from longpole.mindspore.findings import Findings

__all__ = ["TaskTime", "exact_ns", "read_task_times"]

_NEEDED: Final = {
    "operator": ("op_name",),
    "stream": ("stream_id",),
    "start": ("start_time(ms)", "start_time(us)"),
    "duration": ("duration(ms)", "duration(us)"),
}
_DIGITS: Final = {"ms": 6, "us": 3}
_HIGHEST: Final = 2**63
_DECIMAL: Final = re.compile(r"([0-9]{1,19})(?:\.([0-9]*))?")


class TaskTime(NamedTuple):
    """A run of an operator on a stream of the device; both times in nanoseconds."""

    operator: str
    stream: int
    start_ns: int
    duration_ns: int


def read_task_times(path: Path, findings: Findings) -> Iterator[TaskTime]:
    """Give each run, in the order of the file."""
    file = CsvFile(path, findings)
    file.find(_NEEDED)
    units = [file.name_of(key)[-3:-1] for key in ("start", "duration")]
    for row in file.rows():
        stream = file.stamp(row["stream"])
        start_ns, duration_ns = map(exact_ns, (row["start"], row["duration"]), units)
        if start_ns is None or duration_ns is None or stream is None:
            file.report("bad_number", repr(row["start"][:40]))
            continue
        yield TaskTime(row["operator"], stream, start_ns, duration_ns)


def exact_ns(text: str, unit: str) -> int | None:
    r"""Read a decimal number of `ms` or `us` as nanoseconds; digits below 1 ns are rounded.

    Examples
    --------
    >>> exact_ns("438068.41592", "ms"), exact_ns("1736408883704643.212\t", "us")
    (438068415920, 1736408883704643212)
    >>> exact_ns("1.69512E+15", "us") is None
    True
    """
    found = _DECIMAL.fullmatch(text.strip())
    if found is None:
        return None
    digits = _DIGITS[unit]
    fraction = (found[2] or "").ljust(digits + 1, "0")
    rounded_up = fraction[digits] >= "5"
    time_ns = int(found[1] + fraction[:digits]) + rounded_up
    return time_ns if time_ns < _HIGHEST else None
