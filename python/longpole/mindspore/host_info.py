"""What MindSpore recorded of its host stages: `host_info_{rank}.csv`.

A stage is written as two lines, a start and an end, which belong together by event, stage,
thread and process. Stages of one name may nest: an end closes the last start that is open.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from longpole.mindspore.findings import FileFinding, Findings
from longpole.mindspore.text import Columns, stamp, table_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

__all__ = ["COLUMNS", "DatasetStage", "HostEvent", "HostInfo", "read_host_info"]

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
_NEEDED: Final = {name: (name,) for name in COLUMNS}


class HostEvent(NamedTuple):
    """A stage (`phase` X), a point (i), or a stage that never ended (B).

    `end_us` is None where it is not known; `line` is that of its start.
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


@dataclass(slots=True)
class DatasetStage:
    """Runs of one stage of a dataset operator that ended with the same custom info."""

    operation: str
    stage: str
    custom_info: str
    count: int = 0
    total_us: int = 0

    @property
    def mean_us(self) -> float:
        """The mean duration in microseconds."""
        return self.total_us / self.count


@dataclass(frozen=True, slots=True)
class HostInfo:
    """What one file says.

    `events` stand in the order of their last lines, those that never ended after them;
    `memory` has the rows with a memory usage, in the order of `COLUMNS`; `dataset` the means
    of the dataset stages, in the order in which they ended first.
    """

    path: Path
    events: Sequence[HostEvent]
    memory: Sequence[Sequence[str]]
    dataset: Sequence[DatasetStage]
    findings: Sequence[FileFinding] = field(default=())


class _Line(NamedTuple):
    number: int
    cells: Sequence[str]
    stamp_us: int
    memory_kb: int

    @property
    def key(self) -> tuple[str, str, str, str]:
        tid, pid, _, _, event, stage, *_ = self.cells
        return event, stage, tid, pid


def read_host_info(
    path: str | os.PathLike[str], *, developer_rows: bool = True, nesting: bool = True
) -> HostInfo:
    """Read the host stages of one rank.

    Parameters
    ----------
    path
        A `host_info_{rank}.csv`.
    developer_rows
        Whether to keep the rows of level 0, which MindSpore writes for its developers.
    nesting
        Whether a stage may start again before it ended. If not, the earlier start is left open.

    Raises
    ------
    ProfileError
        The file is empty, or has no header with the columns that are needed.
    OSError
        The file cannot be read.
    """
    path, findings = Path(path), Findings()
    pairs = _Pairs(path, findings, nesting=nesting)
    memory: list[Sequence[str]] = []
    for line in _lines(path, findings):
        if line.cells[6].strip() == "0" and not developer_rows:
            continue
        if line.memory_kb > 0:
            memory.append(line.cells)
        if line.stamp_us > 0:
            pairs.add(line)
        else:
            findings.add("no_time", path, line.number)
    if not memory:
        findings.add("no_memory", path)
    events = pairs.close()
    return HostInfo(path, events, memory, list(pairs.dataset.values()), findings.all())


def _lines(path: Path, findings: Findings) -> Iterator[_Line]:
    header, rows = table_of(path, findings, hint="record with profile_framework='all'")
    columns = Columns(path, header, _NEEDED, findings)
    places = [columns.place(name) for name in COLUMNS]
    for number, row in rows:
        if len(row) != columns.count:
            findings.add("extra_fields" if len(row) > columns.count else "bad_row", path, number)
            continue
        cells = [row[place].strip() for place in places]
        # MindSpore writes 0 for what was not recorded, and other tools N/A.
        recorded = ["0" if cell == "N/A" else cell for cell in cells[9:]]
        memory_kb = stamp(recorded[0], path, number, findings)
        stamp_us = stamp(recorded[1], path, number, findings)
        if memory_kb is not None and stamp_us is not None:
            yield _Line(number, cells, stamp_us, memory_kb)


class _Pairs:
    """Joins starts and ends as they come."""

    def __init__(self, path: Path, findings: Findings, *, nesting: bool) -> None:
        self._path, self._findings, self._nesting = path, findings, nesting
        self._open: dict[tuple[str, str, str, str], list[_Line]] = {}
        self._left: list[_Line] = []
        self._events: list[HostEvent] = []
        self.dataset: dict[tuple[str, str, str], DatasetStage] = {}

    def add(self, line: _Line) -> None:
        match line.cells[7]:
            case "0":
                self._start(line)
            case "1":
                self._end(line)
            case "2":
                self._events.append(_event("i", line, None))
            case other:
                self._findings.add("unknown_mark", self._path, line.number, repr(other[:40]))

    def _start(self, line: _Line) -> None:
        starts = self._open.setdefault(line.key, [])
        if starts and not self._nesting:
            self._left.append(starts.pop())
        starts.append(line)

    def _end(self, line: _Line) -> None:
        starts = self._open.get(line.key)
        if not starts:
            name = f"{line.cells[4]}::{line.cells[5]}"
            self._findings.add("unmatched_end", self._path, line.number, name)
            return
        start = starts.pop()
        if line.stamp_us < start.stamp_us:
            self._findings.add("clock_stepped_back", self._path, line.number)
            return
        self._events.append(_event("X", start, line.stamp_us))
        if line.cells[3] == "Dataset":
            self._count(line, line.stamp_us - start.stamp_us)

    def _count(self, end: _Line, duration_us: int) -> None:
        key = (end.cells[4], end.cells[5], end.cells[8])
        stage = self.dataset.setdefault(key, DatasetStage(*key))
        stage.count += 1
        stage.total_us += duration_us

    def close(self) -> list[HostEvent]:
        """Give all events; what is open still is reported."""
        left = [*self._left, *(line for starts in self._open.values() for line in starts)]
        for line in sorted(left):
            name = f"{line.cells[4]}::{line.cells[5]}"
            self._findings.add("unmatched_start", self._path, line.number, name)
            self._events.append(_event("B", line, None))
        return self._events


def _event(phase: Literal["X", "i", "B"], start: _Line, end_us: int | None) -> HostEvent:
    tid, pid, parent_pid, module, event, stage, *_ = start.cells
    name = f"{event}::{stage}"
    return HostEvent(
        phase, name, module, start.stamp_us, end_us, pid, tid, parent_pid, start.number
    )
