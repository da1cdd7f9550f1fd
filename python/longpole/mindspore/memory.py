"""Memory usage: `cpu_ms_memory_record_{rank}.txt`, and RSS in `host_info`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from longpole.mindspore.text import CsvFile

if TYPE_CHECKING:
    from pathlib import Path

    from longpole.mindspore.findings import Findings
    from longpole.mindspore.host_info import HostInfo

__all__ = ["MemorySummary", "host_memory", "read_memory_record"]

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
