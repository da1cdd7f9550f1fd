"""Host stages recorded by MindSpore: `host_info_{rank}.csv`.

A stage is written as two lines, a start and an end, matched by event, stage, thread and process.
Stages with one name may nest: an end closes the last open start.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from longpole.formats.mindspore.findings import FileFinding, Findings
from longpole.formats.mindspore.text import CsvFile

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

COLUMNS: Final = (
    "tid",
    "pid",
    "parent_pid",
    "module_name",
    "event",
    "stage",
    "level",
    "start_end",
    "custom_info",
    "memory_usage(kB)",
    "time_stamp(us)",
)


class HostEvent(NamedTuple):
    """A stage (`phase` X), a point (i), or a stage without an end (B).

    `end_us` is None if unknown; `line` is that of its start.
    """

    phase: Literal["X", "i", "B"]
    name: str
    module: str
    start_us: int
    end_us: int | None
    pid: str
    tid: str
    parent_pid: str
    line: int


@dataclass(frozen=True, slots=True)
class DatasetStage:
    """Runs of one stage of a dataset operator that ended with the same custom info."""

    operation: str
    stage: str
    custom_info: str
    count: int
    mean_us: float


@dataclass(frozen=True, slots=True)
class HostInfo:
    """Contents of one file.

    `events` are in the order of their last lines, followed by those without an end; `memory` has
    the rows with a memory usage, in the order of `COLUMNS`; `dataset` has the means of the dataset
    stages, in the order in which they first ended.
    """

    path: Path
    events: Sequence[HostEvent]
    memory: Sequence[Sequence[str]]
    dataset: Sequence[DatasetStage]
    findings: Sequence[FileFinding] = field(default=())


def read_host_info(path: str | os.PathLike[str], *, developer_rows: bool = True) -> HostInfo:
    """Read the host stages of one rank.

    Parameters
    ----------
    path
        A `host_info_{rank}.csv`.
    developer_rows
        Whether to keep the rows of level 0, which MindSpore writes for its developers.

    Raises
    ------
    ProfileError
        The file is empty, or its header lacks the required columns.
    OSError
        The file cannot be read.
    """
    path, findings = Path(path), Findings()
    file = CsvFile(path, findings, hint="record with profile_framework='all'")
    file.find({name: (name,) for name in COLUMNS})
    pairs = _Pairs(file)
    memory: list[Sequence[str]] = []
    for row in file.rows(surplus="extra_fields"):
        memory_kb, stamp_us = (_recorded(file, row[name]) for name in COLUMNS[-2:])
        is_left_out = row["level"] == "0" and not developer_rows
        if memory_kb is None or stamp_us is None or is_left_out:
            continue
        if memory_kb > 0:
            memory.append(list(row.values()))
        if stamp_us > 0:
            pairs.add(row, stamp_us)
        else:
            file.report("no_time")
    if not memory:
        findings.add("no_memory", path)
    events = pairs.close()
    return HostInfo(path, events, memory, pairs.dataset(), findings.all())


def _recorded(file: CsvFile, cell: str) -> int | None:
    """Parse a number; MindSpore writes 0 for missing values, and other tools N/A."""
    return 0 if cell == "N/A" else file.stamp(cell)


class _Pairs:
    """Matches starts and ends in file order; starts without an end become events without an end."""

    def __init__(self, file: CsvFile) -> None:
        self._file = file
        self._open: dict[tuple[str, ...], list[HostEvent]] = {}
        self._events: list[HostEvent] = []
        self._dataset: dict[tuple[str, str, str], tuple[int, int]] = {}

    def add(self, row: Mapping[str, str], stamp_us: int) -> None:
        match row["start_end"]:
            case "0":
                self._starts(row).append(self._event("B", row, stamp_us))
            case "1":
                self._end(row, stamp_us)
            case "2":
                self._events.append(self._event("i", row, stamp_us))
            case other:
                self._file.report("unknown_mark", repr(other[:40]))

    def _starts(self, row: Mapping[str, str]) -> list[HostEvent]:
        key = tuple(row[name] for name in ("event", "stage", "tid", "pid"))
        return self._open.setdefault(key, [])

    def _end(self, row: Mapping[str, str], stamp_us: int) -> None:
        starts = self._starts(row)
        if not starts:
            self._file.report("unmatched_end", _name(row))
            return
        start = starts.pop()
        if stamp_us < start.start_us:
            self._file.report("clock_stepped_back")
            return
        self._events.append(start._replace(phase="X", end_us=stamp_us))
        if row["module_name"] == "Dataset":
            group = (row["event"], row["stage"], row["custom_info"])
            count, total_us = self._dataset.get(group, (0, 0))
            self._dataset[group] = (count + 1, total_us + stamp_us - start.start_us)

    def dataset(self) -> list[DatasetStage]:
        """Return the means of the dataset stages."""
        groups = self._dataset.items()
        return [DatasetStage(*group, count, total / count) for group, (count, total) in groups]

    def close(self) -> list[HostEvent]:
        """Return all events; report those still open."""
        left = [start for starts in self._open.values() for start in starts]
        left.sort(key=lambda start: start.line)
        for start in left:
            self._file.report("unmatched_start", start.name, start.line)
        return [*self._events, *left]

    def _event(
        self, phase: Literal["X", "i", "B"], row: Mapping[str, str], stamp_us: int
    ) -> HostEvent:
        origin = (row["pid"], row["tid"], row["parent_pid"], self._file.line)
        return HostEvent(phase, _name(row), row["module_name"], stamp_us, None, *origin)


def _name(row: Mapping[str, str]) -> str:
    return f"{row['event']}::{row['stage']}"
