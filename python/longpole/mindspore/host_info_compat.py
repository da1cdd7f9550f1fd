"""The files that MindSpore r2.3 creates from `host_info_{rank}.csv`, byte for byte.

Its faults are reproduced: a start is lost if its stage starts again, stages without an end are
named differently, and an unexpected row raises the same exception as in MindSpore.
"""

from __future__ import annotations

import csv
import io
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from longpole.mindspore.host_info import COLUMNS
from longpole.mindspore.output import csv_text
from longpole.opening import open_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["compatible_dataset", "compatible_memory_and_timeline"]

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
    """Create an event from an end with its start, or from a point; store starts."""
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
