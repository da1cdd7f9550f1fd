"""Host stages recorded by MindSpore: `host_info_{rank}.csv`.

A stage is written as two lines, a start and an end, matched by event, stage, thread and process.
Stages with one name may nest: an end closes the last open start.
"""

from __future__ import annotations

import csv
import io
import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from longpole.mindspore.findings import FileFinding, Findings
from longpole.mindspore.output import csv_text
from longpole.mindspore.text import CsvFile
from longpole.opening import open_text

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "COLUMNS",
    "DatasetStage",
    "HostEvent",
    "HostInfo",
    "compatible_dataset",
    "compatible_memory_and_timeline",
    "read_host_info",
]


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


# The files that MindSpore r2.3 creates from `host_info_{rank}.csv`, byte for byte.


_START, _END, _POINT = "0", "1", "2"
_DATASET: Final = ("Operation", "Stage", "Occurrences", "Avg. time (us)", "Custom Info")

_Row = dict[str, str]


def compatible_memory_and_timeline(
    path: Path, *, developer_rows: bool = True
) -> tuple[str | None, str | None]:
    """Return the text of `host_memory_{rank}.csv` and `timeline_{rank}.json`; None if empty.

    Raises
    ------
    TypeError, ValueError
        Where MindSpore raises them.
    """
    starts: dict[str, int] = {}
    events: list[dict[str, Any]] = []
    memory: list[_Row] = []

    def add(row: _Row) -> None:
        if int(row["time_stamp(us)"]) > 0:
            event = _event(row, starts)
            events.extend([event] if event else [])
        if int(row["memory_usage(kB)"]) > 0:
            memory.append(row)

    _each_row(path, add, developer_rows=developer_rows)
    events += [_open_event(key, start_us) for key, start_us in starts.items()]
    return _memory_text(memory), json.dumps(events) if events else None


def compatible_dataset(path: Path, *, developer_rows: bool = True) -> str:
    """Return the text of `dataset_{rank}.csv`."""
    starts: dict[str, int] = {}
    means: dict[str, tuple[int, float]] = {}
    parts: dict[str, tuple[str, str, str]] = {}

    def add(row: _Row) -> None:
        event = _event(row, starts) if row["module_name"] == "Dataset" else None
        if event and "dur" in event:
            title = f"{event['name']}::{row['custom_info']}"
            parts.setdefault(title, (row["event"], row["stage"], row["custom_info"]))
            count, mean = means.get(title, (0, 0.0))
            means[title] = (count + 1, mean + (event["dur"] - mean) / (count + 1))

    _each_row(path, add, developer_rows=developer_rows)
    rows = []
    for title, (count, mean) in means.items():
        operation, stage, custom = parts[title]
        rows.append((operation, stage, count, mean, custom))
    return csv_text([_DATASET, *rows])


def _each_row(path: Path, add: Callable[[_Row], None], *, developer_rows: bool) -> None:
    """Add each row except those that lack a column."""
    with open_text(path, is_named=False, newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        with suppress(KeyError):
            if row["level"] != "0" or developer_rows:
                add(row)


def _event(row: _Row, starts: dict[str, int]) -> dict[str, Any] | None:
    """Create an event from an end and its start, or from a point; store starts."""
    key = f"{row['event']}_{row['stage']}_{row['tid']}_{row['pid']}"
    stamp_us, mark = int(row["time_stamp(us)"]), row["start_end"]
    timed: dict[str, Any] = {"ts": stamp_us, "ph": "i"}
    if mark == _START:
        starts[key] = stamp_us
    if mark == _END and key in starts:
        start_us = starts.pop(key)
        timed = {"ts": start_us, "dur": stamp_us - start_us, "ph": "X"}
    elif mark != _POINT:
        return None
    return {
        "name": f"{row['event']}::{row['stage']}",
        "cat": row["module_name"],
        **timed,
        "pid": row["pid"],
        "tid": row["tid"],
        "args": {"parent_pid": row["parent_pid"]},
    }


def _open_event(key: str, start_us: int) -> dict[str, Any]:
    """Extract name, thread and process from the key again, as MindSpore does."""
    last = key.rfind("_")
    second = key.rfind("_", 0, last - 1)
    name, tid, pid = key[:second], key[second + 1 : last], key[last + 1 :]
    return {"name": name, "pid": pid, "tid": tid, "ph": "B", "ts": start_us}


def _memory_text(rows: list[_Row]) -> str | None:
    """Return the rows with the columns in MindSpore's own order."""
    if not rows:
        return None
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
