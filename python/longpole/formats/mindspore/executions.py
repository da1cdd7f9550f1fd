"""The runs of operators and GPU activities: `*_execute_timestamp_{rank}.txt`.

Timestamps remain whole nanoseconds. Durations have six digits, as printed by C++: in milliseconds
for operators on the CPU, in microseconds for the others.

For an Ascend device, older versions write `output_timeline_data_{rank}.txt`: operator, stream,
start and duration, with the units in the header. These timestamps are decimal numbers and are
parsed exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.formats.mindspore.findings import ProfileError
from longpole.formats.mindspore.text import CsvFile, TextFile, exact_ns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from longpole.formats.mindspore.findings import Findings

_NS_IN_MS: Final = 1e6
_NS_IN_US: Final = 1e3
_WITH_THREAD: Final = 3
LONGEST_NS: Final = 10**16
"""Longer than any run: 115 days. A longer time is treated as a damaged number."""
_KERNEL_COLUMNS: Final = {
    "name": ("name",),
    "kind": ("type",),
    "operator": ("op_full_name",),
    "total": ("total_duration(us)", "total_duration"),
}
_UNUSED: Final = (
    "occurrences",
    "stream_id",
    "block_dim",
    "grid_dim",
    "avg_duration(us)",
    "max_duration(us)",
    "min_duration(us)",
)
_NEEDED: Final = {
    "operator": ("op_name",),
    "stream": ("stream_id",),
    "start": ("start_time(ms)", "start_time(us)"),
    "duration": ("duration(ms)", "duration(us)"),
}
_NS_IN: Final = {"(ms)": 1_000_000, "(us)": 1_000}


@dataclass(slots=True)
class Executions:
    """Every run of an operator, kernel or copy in one file, as columns.

    `operators` are full names, `threads` can also be streams; `operator` and `thread` of a run are
    indices into these.
    """

    operators: list[str] = field(default_factory=list)
    threads: list[str] = field(default_factory=list)
    operator: list[int] = field(default_factory=list)
    thread: list[int] = field(default_factory=list)
    start_ns: list[int] = field(default_factory=list)
    duration_ns: list[int] = field(default_factory=list)

    def add(self, operator: int, thread: int, span: tuple[int, int]) -> None:
        """Add a run."""
        self.operator.append(operator)
        self.thread.append(thread)
        self.start_ns.append(span[0])
        self.duration_ns.append(span[1])

    def rows(self) -> Iterator[tuple[int, int, int, int]]:
        """Return operator, thread, start and duration of each run."""
        return zip(self.operator, self.thread, self.start_ns, self.duration_ns, strict=True)

    def by_start(self) -> list[int]:
        """Return the rows sorted by start, then in file order."""
        return sorted(range(len(self.start_ns)), key=self.start_ns.__getitem__)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A row of `gpu_activity_data`: all kernels with one name.

    `operator` launched it first; other operators may launch it too.
    """

    name: str
    kind: str
    operator: str
    total_us: float | None


def read_executions(path: Path, findings: Findings) -> Executions:
    """Read the runs of operators; durations are in ms for the CPU's file."""
    file, found = TextFile(path, findings), Executions()
    scale = _NS_IN_MS if path.name.startswith("cpu_") else _NS_IN_US
    threads: dict[str, int] = {}
    for text in file.lines(keep_words=True):
        name, _, rest = text.partition(";")
        label, _, times = rest.rpartition(";")
        if not label:
            file.report("bad_row")
            continue
        found.operators.append(name)
        for time in times.split():
            parts = time.split(",")
            if len(parts) not in (2, _WITH_THREAD):
                file.report("bad_row", repr(time[:40]))
                continue
            span = _span(file, parts[0], parts[1], scale)
            if span is not None:
                thread = threads.setdefault("".join((label, *parts[2:])), len(threads))
                found.add(len(found.operators) - 1, thread, span)
    found.threads = list(threads)
    return found


def _span(file: TextFile, start: str, duration: str, scale: float) -> tuple[int, int] | None:
    """Parse a start in ns and a duration; add a finding and return None if one is invalid."""
    start_ns, length = file.stamp(start), file.number(duration)
    if start_ns is None or length is None:
        return None
    if not 0 <= length * scale < LONGEST_NS:
        file.report("clock_stepped_back" if length < 0 else "bad_number")
        return None
    return start_ns, round(length * scale)


def read_activities(path: Path, findings: Findings) -> Executions:
    """Read the kernels and copies of a GPU, whose names may contain commas and spaces."""
    file, found = TextFile(path, findings), Executions()
    names: dict[str, int] = {}
    streams: dict[str, int] = {}
    for text in file.lines():
        name, *fields = text.rsplit(";", 3)
        if len(fields) != 3:  # noqa: PLR2004 (stream, start, duration)
            file.report("bad_row")
            continue
        stream, span = file.stamp(fields[0]), _span(file, fields[1], fields[2], _NS_IN_US)
        if stream is not None and span is not None:
            place = names.setdefault(name, len(names))
            found.add(place, streams.setdefault(str(stream), len(streams)), span)
    found.operators, found.threads = list(names), list(streams)
    return found


def read_kernels(path: Path, findings: Findings) -> list[Kernel]:
    """Read `gpu_activity_data`: one row per kernel name; empty for an empty file."""
    try:
        file = CsvFile(path, findings)
    except ProfileError:
        return []
    file.find(_KERNEL_COLUMNS, _UNUSED)
    return [
        Kernel(row["name"], row["kind"], row["operator"], file.number(row["total"]))
        for row in file.rows()
    ]


def clock_offset_ns(path: Path, findings: Findings) -> int | None:
    """Read `start_time_{rank}.txt`: the offset from host to device timestamps."""
    file, times = TextFile(path, findings), {}
    for text in file.lines():
        name, _, value = text.rpartition(":")
        found = file.stamp(value)
        if found is not None:
            times["host" if name.startswith("host") else "device"] = found
    if len(times) != 2:  # noqa: PLR2004 (both clocks)
        return None
    return times["device"] - times["host"]


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
    """Parse a time; None in scientific notation, in which a spreadsheet has lost digits."""
    return None if "e" in cell.lower() else exact_ns(cell, scale)


# Floating-point operations of an Ascend device's operators: `flops_{rank}.txt`.


_NEEDED_FLOPS: Final = {
    "operator": ("full_op_name", "full_kernel_name", "op_full_name"),
    "operations": ("FLOPs", "FLOPs(M)", "MFLOPs(10^6)", "MFLOPs", "MFLOPs(10^6 cube)"),
    "rate": ("FLOPS", "FLOPS(G/s)", "GFLOPS(10^9)", "GFLOPS", "GFLOPS(10^9 cube)"),
}
_KNOWN: Final = (
    "FLOPS utilization",
    "FLOPS utilization(%)",
    "MFLOPs utilization(%)",
    "MFLOPs(10^6 vector)",
    "GFLOPS(10^9 vector)",
)
_MOST: Final = 1e30
_SCALE: Final = {"M": 1e6, "G": 1e9}


@dataclass(frozen=True, slots=True)
class FlopsSummary:
    """Totals over all operators of one file.

    A value is None if the header has no unit (`unit_not_named`), or if the rate is 0 for an
    operator that computed.
    """

    rank: int
    n_operators: int
    operations: float | None
    """Floating-point operations of all operators."""
    operations_per_s: float | None
    """Floating-point operations per second while the operators ran."""
    operations_as_written: float | None = None
    """Sum of the column, if its header has no unit."""


def read_flops(path: Path, rank: int, findings: Findings) -> FlopsSummary:
    """Read the file of one rank."""
    file = CsvFile(path, findings)
    file.find(_NEEDED_FLOPS, _KNOWN)
    unit, unit_of_rate = (_scale(file.name_of(key)) for key in ("operations", "rate"))
    if None in (unit, unit_of_rate):
        findings.add("unit_not_named", path, 1, file.name_of("operations"))
    count, operations, seconds = 0, 0.0, 0.0
    for row in file.rows():
        done, rate = file.number(row["operations"]), file.number(row["rate"])
        if done is None or rate is None:
            continue
        if max(done, rate) > _MOST:
            file.report("bad_number")
            continue
        count += 1
        operations += done * (unit or 1)
        if done:
            seconds += done * (unit or 1) / (rate * (unit_of_rate or 1)) if rate else float("nan")
    total = None if None in (unit, unit_of_rate) else operations
    rate_of_all = operations / seconds if total and seconds > 0 else None
    as_written = operations if unit is None else None
    return FlopsSummary(rank, count, total, rate_of_all, as_written)


def _scale(name: str) -> float | None:
    """Parse the unit of a column: `MFLOPs(10^6)`, `FLOPs(M)`, `GFLOPS`, `FLOPS(G/s)`."""
    found = next((letter for letter in _SCALE if f"({letter}" in name or name[0] == letter), None)
    return None if found is None else _SCALE[found]
