"""Formats the tables of an analysis: CSV with units in the column names, and JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from longpole.formats.mindspore.host_info import COLUMNS
from longpole.formats.mindspore.output import csv_text, write_new
from longpole.formats.mindspore.text import CsvFile
from longpole.report.csv import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from longpole.formats.mindspore.device_tables import DeviceTables
    from longpole.formats.mindspore.findings import Findings
    from longpole.formats.mindspore.host_info import DatasetStage, HostInfo
    from longpole.formats.mindspore.operators import OpRow
    from longpole.formats.mindspore.step_trace import StepTrace

_OPERATORS: Final = (
    "op_side",
    "op_type",
    "input_shapes",
    "n_runs",
    "total_ns",
    "mean_ns",
    "kernels_ns",
)
_STEPS: Final = (
    "number",
    "start_ns",
    "end_ns",
    "total_ns",
    "fp_ns",
    "bp_ns",
    "interval_ns",
    "fp_and_bp_ns",
    "tail_ns",
)


def _text(rows: Iterable[Iterable[Any]], line_end: str) -> str:
    """Format rows as CSV in which a spreadsheet does not interpret any string as a formula."""
    cells = ([harmless(each) if isinstance(each, str) else each for each in row] for row in rows)
    return csv_text(cells, line_end)


def memory_text(host_info: HostInfo) -> str:
    """Format the rows with a memory usage, in file order."""
    return _text([COLUMNS, *host_info.memory], "\n")


def dataset_text(stages: Iterable[DatasetStage]) -> str:
    """Format the mean times of the dataset stages, in microseconds."""
    header = ("operation", "stage", "n_runs", "mean_us", "custom_info")
    rows = ((s.operation, s.stage, s.count, s.mean_us, s.custom_info) for s in stages)
    return _text([header, *rows], "\n")


def operators_text(rows: Iterable[OpRow]) -> str:
    """Format the cost of operators by shape, times in nanoseconds."""
    return _text([_OPERATORS, *([getattr(row, name) for name in _OPERATORS] for row in rows)], "\n")


def steps_text(trace: StepTrace) -> str:
    """Format the steps in nanoseconds, with two columns for each collective operation."""
    names = list(dict.fromkeys(reduce.operator for step in trace.steps for reduce in step.reduces))
    header = [*_STEPS, *(f"{name} {end}" for name in names for end in ("start_ns", "end_ns"))]
    rows = []
    for step in trace.steps:
        spans = {reduce.operator: (reduce.start_ns, reduce.end_ns) for reduce in step.reduces}
        more = (time for name in names for time in spans.get(name, (None, None)))
        rows.append([*(getattr(step, name) for name in _STEPS), *more])
    return _text([header, *rows], "\n")


def write_devices(devices: Sequence[DeviceTables], output: Path) -> list[Path]:
    """Write the non-empty tables of each device, named by rank, else by index."""
    written = []
    ranks = [each.rank for each in devices]
    is_clear = None not in ranks and len(set(ranks)) == len(ranks)
    for place, device in enumerate(devices):
        number = device.rank if is_clear else place
        for name in ("operators", "shapes", "metrics", "steps"):
            rows = [asdict(row) for row in getattr(device, name)]
            if rows:
                text = _text([rows[0], *(row.values() for row in rows)], "\n")
                written.append(write_new(output / f"device_{name}_{number}.csv", text))
    return written


# Memory usage: `cpu_ms_memory_record_{rank}.txt`, and RSS in `host_info`.


_NEEDED: Final = {
    "time_ns": ("Timestamp(ns)",),
    "allocated": ("Total Allocated(Byte)",),
    "reserved": ("Total Reserved(Byte)",),
    "active": ("Total Active(Byte)",),
}


@dataclass(frozen=True, slots=True)
class MemorySummary:
    """Maxima recorded in one file, in bytes; None if not recorded."""

    source: Literal["allocator", "process"]
    """Memory that MindSpore's allocator allocated, reserved from the system, and has in use; or the
    resident set of the process."""
    n_records: int
    peak_at_ns: int | None
    """When `peak_allocated_bytes`, or `peak_rss_bytes`, was first reached."""
    peak_allocated_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    peak_active_bytes: int | None = None
    peak_rss_bytes: int | None = None
    peak_stage: str | None = None


def read_memory_record(path: Path, findings: Findings) -> MemorySummary:
    """Read the allocator's record of one rank."""
    file = CsvFile(path, findings)
    file.find(_NEEDED)
    count, at_ns = 0, None
    peaks = [-1, -1, -1]
    for row in file.rows():
        time_ns, *sizes = [file.stamp(cell) for cell in row.values()]
        known = [size for size in sizes if size is not None]
        if time_ns is None or len(known) < len(peaks):
            continue
        count += 1
        if known[0] > peaks[0]:
            at_ns = time_ns
        peaks = list(map(max, peaks, known))
    return MemorySummary("allocator", count, at_ns, *(peaks if count else ()))


def host_memory(host_info: HostInfo) -> MemorySummary | None:
    """Return the maximum memory of the process at a host stage; None if not recorded."""
    if not host_info.memory:
        return None
    peak = max(host_info.memory, key=lambda row: int(row[9]))
    at_us = int(peak[10]) if peak[10].isdecimal() else 0
    return MemorySummary(
        "process",
        len(host_info.memory),
        at_us * 1000 if at_us > 0 else None,
        peak_rss_bytes=1024 * int(peak[9]),
        peak_stage=f"{peak[4]}::{peak[5]}",
    )
