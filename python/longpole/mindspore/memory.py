"""How much memory was in use: `cpu_ms_memory_record_{rank}.txt`, and RSS in `host_info`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from longpole.mindspore.findings import FileFinding, Findings
from longpole.mindspore.text import Columns, stamp, table_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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
    """The most of what one file recorded, in bytes; None is not recorded.

    `source` is `allocator` (what MindSpore's allocator gave out, reserved from the system, and
    has in use) or `process` (the resident set of the process). `peak_at_ns` is when
    `peak_allocated_bytes`, or `peak_rss_bytes`, was reached first.
    """

    source: str
    n_records: int
    peak_at_ns: int | None
    peak_allocated_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    peak_active_bytes: int | None = None
    peak_rss_bytes: int | None = None
    peak_stage: str | None = None
    findings: Sequence[FileFinding] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Give everything but the findings as plain values."""
        values = asdict(self)
        del values["findings"]
        return values


def read_memory_record(path: Path) -> MemorySummary:
    """Read what the allocator of one rank recorded.

    Raises
    ------
    ProfileError
        The file is empty, or a column is missing.
    OSError
        The file cannot be read.
    """
    findings = Findings()
    header, rows = table_of(path, findings)
    columns = Columns(path, header, _NEEDED, findings)
    count, at_ns = 0, None
    peaks = {"allocated": -1, "reserved": -1, "active": -1}
    for line, row in columns.whole(rows):
        values = {key: stamp(row[columns.place(key)], path, line, findings) for key in _NEEDED}
        if None in values.values():
            continue
        count += 1
        if (values["allocated"] or 0) > peaks["allocated"]:
            at_ns = values["time_ns"]
        peaks = {key: max(peak, values[key] or 0) for key, peak in peaks.items()}
    allocated, reserved, active = (peak if count else None for peak in peaks.values())
    return MemorySummary(
        "allocator", count, at_ns, allocated, reserved, active, findings=findings.all()
    )


def host_memory(info: HostInfo) -> MemorySummary | None:
    """Find the most memory that the process used at a host stage; None where none is recorded."""
    if not info.memory:
        return None
    peak = max(info.memory, key=lambda row: int(row[9]))
    at_us = int(peak[10]) if peak[10].isdecimal() else 0
    return MemorySummary(
        "process",
        len(info.memory),
        at_us * 1000 if at_us > 0 else None,
        peak_rss_bytes=1024 * int(peak[9]),
        peak_stage=f"{peak[4]}::{peak[5]}",
    )
