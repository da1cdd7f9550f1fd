"""When each operator and each GPU activity ran: `*_execute_timestamp_{rank}.txt`.

Stamps are whole nanoseconds and stay so. The durations have six digits, as C++ prints them: of
operators on the CPU in milliseconds, of the others in microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from longpole.mindspore.text import Columns, lines_of, number, rows_of, stamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from longpole.mindspore.findings import Findings

__all__ = ["LONGEST_NS", "Activity", "Executions", "Kernel", "clock_offset_ns", "read_activities"]
__all__ += ["read_executions", "read_kernels"]

_NS_IN_MS: Final = 1e6
_NS_IN_US: Final = 1e3
_WITH_THREAD: Final = 3
LONGEST_NS: Final = 10**16
"""Longer than any run: 115 days. What is longer is a damaged number."""


@dataclass(slots=True)
class Executions:
    """Every run of the operators of one file, as columns.

    `operators` are full names; `operator` of a run is a row of it, `thread` of `threads`.
    """

    operators: list[str] = field(default_factory=list)
    threads: list[str] = field(default_factory=list)
    operator: list[int] = field(default_factory=list)
    thread: list[int] = field(default_factory=list)
    start_ns: list[int] = field(default_factory=list)
    duration_ns: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        """Give the number of runs."""
        return len(self.start_ns)

    def by_start(self) -> list[int]:
        """Give the rows in the order of their starts, then of the file."""
        return sorted(range(len(self)), key=self.start_ns.__getitem__)


@dataclass(slots=True)
class Activity:
    """Every kernel and copy of a GPU, as columns; `name` of one is a row of `names`."""

    names: list[str] = field(default_factory=list)
    name: list[int] = field(default_factory=list)
    stream: list[int] = field(default_factory=list)
    start_ns: list[int] = field(default_factory=list)
    duration_ns: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Kernel:
    """What `gpu_activity_data` says of all kernels of one name.

    `operator` launched it first; others may launch it too.
    """

    name: str
    kind: str
    operator: str
    count: int | None
    total_us: float | None


def read_executions(path: Path, findings: Findings) -> Executions:
    """Read the runs of operators; durations are in ms where the file is the CPU's."""
    reader = _Reader(path, findings)
    for line, text in lines_of(path, findings, keep_words=True):
        name, _, rest = text.partition(";")
        label, _, times = rest.rpartition(";")
        if not label:
            findings.add("bad_row", path, line)
            continue
        reader.found.operators.append(name)
        for time in times.split():
            reader.add(time, label, line)
    reader.found.threads = list(reader.threads)
    return reader.found


class _Reader:
    """Adds runs to the columns as they come."""

    def __init__(self, path: Path, findings: Findings) -> None:
        self._path, self._findings = path, findings
        self._scale = _NS_IN_MS if path.name.startswith("cpu_") else _NS_IN_US
        self.threads: dict[str, int] = {}
        self.found = Executions()

    def add(self, time: str, label: str, line: int) -> None:
        """Read `start,duration` or `start,duration,thread`."""
        parts = time.split(",")
        if len(parts) not in (2, _WITH_THREAD):
            self._findings.add("bad_row", self._path, line, repr(time[:40]))
            return
        start_ns = stamp(parts[0], self._path, line, self._findings)
        duration = number(parts[1], self._path, line, self._findings)
        if start_ns is None or duration is None:
            return
        if not 0 <= duration * self._scale < LONGEST_NS:
            code = "clock_stepped_back" if duration < 0 else "bad_number"
            self._findings.add(code, self._path, line)
            return
        thread = f"{label}{parts[2]}" if len(parts) == _WITH_THREAD else label
        self.found.operator.append(len(self.found.operators) - 1)
        self.found.thread.append(self.threads.setdefault(thread, len(self.threads)))
        self.found.start_ns.append(start_ns)
        self.found.duration_ns.append(round(duration * self._scale))


def read_activities(path: Path, findings: Findings) -> Activity:
    """Read the kernels and copies of a GPU; their names may contain commas and spaces."""
    found = Activity()
    names: dict[str, int] = {}
    for line, text in lines_of(path, findings):
        parts = text.rsplit(";", 3)
        if len(parts) != 4:  # noqa: PLR2004 (name, stream, start, duration)
            findings.add("bad_row", path, line)
            continue
        stream = stamp(parts[1], path, line, findings)
        start_ns = stamp(parts[2], path, line, findings)
        duration = number(parts[3], path, line, findings)
        if stream is None or start_ns is None or duration is None:
            continue
        if not 0 <= duration * _NS_IN_US < LONGEST_NS:
            findings.add("clock_stepped_back" if duration < 0 else "bad_number", path, line)
            continue
        found.name.append(names.setdefault(parts[0], len(names)))
        found.stream.append(stream)
        found.start_ns.append(start_ns)
        found.duration_ns.append(round(duration * _NS_IN_US))
    found.names = list(names)
    return found


_KERNEL_COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    "name": ("name",),
    "kind": ("type",),
    "operator": ("op_full_name",),
    "count": ("occurrences",),
    "total": ("total_duration(us)", "total_duration"),
}
_UNUSED: Final = (
    "stream_id",
    "block_dim",
    "grid_dim",
    "avg_duration(us)",
    "max_duration(us)",
    "min_duration(us)",
)


def read_kernels(path: Path, findings: Findings) -> list[Kernel]:
    """Read `gpu_activity_data`: a row for each kernel name."""
    rows = rows_of(path, findings)
    _, header = next(rows, (0, None))
    if header is None:
        return []
    columns = Columns(path, header, _KERNEL_COLUMNS, findings, known=_UNUSED)
    kernels = []
    for line, row in rows:
        if len(row) != columns.count:
            findings.add("bad_row", path, line)
            continue
        cell = {key: row[columns.place(key)].strip() for key in _KERNEL_COLUMNS}
        count = stamp(cell["count"], path, line, findings)
        total_us = number(cell["total"], path, line, findings)
        kernels.append(Kernel(cell["name"], cell["kind"], cell["operator"], count, total_us))
    return kernels


def clock_offset_ns(path: Path, findings: Findings) -> int | None:
    """Read `start_time_{rank}.txt`: what to add to stamps of the host to get the device's."""
    times = {}
    for line, text in lines_of(path, findings):
        name, _, value = text.rpartition(":")
        found = stamp(value, path, line, findings)
        if found is not None:
            times["host" if name.startswith("host") else "device"] = found
    if len(times) != 2:  # noqa: PLR2004 (both clocks)
        return None
    return times["device"] - times["host"]
