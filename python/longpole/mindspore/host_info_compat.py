"""The files that MindSpore r2.3 makes of `host_info_{rank}.csv`, byte for byte.

Its faults are kept: a start is lost when its stage starts again, stages that never end are named
otherwise than those that do, and a row that is not as expected ends the whole in the exception
that MindSpore raises.
"""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["compatible_dataset", "compatible_memory_and_timeline"]

_START, _END, _POINT = "0", "1", "2"


def compatible_memory_and_timeline(
    path: Path, *, developer_rows: bool = True
) -> tuple[str | None, str | None]:
    """Give the text of `host_memory_{rank}.csv` and `timeline_{rank}.json`; None where none is.

    Raises
    ------
    TypeError, ValueError
        Where MindSpore does.
    """
    starts: dict[str, int] = {}
    events: list[dict[str, Any]] = []
    memory: list[dict[str, str]] = []
    header, rows = _rows(path)
    for row in rows:
        try:
            if row["level"] == "0" and not developer_rows:
                continue
            if int(row["time_stamp(us)"]) > 0:
                _add(row, starts, events)
            if int(row["memory_usage(kB)"]) > 0:
                memory.append(row)
        except KeyError:
            continue
    events += [_open_event(key, start_us) for key, start_us in starts.items()]
    return _memory_text(header, memory), json.dumps(events) if events else None


def compatible_dataset(path: Path, *, developer_rows: bool = True) -> str:
    """Give the text of `dataset_{rank}.csv`."""
    starts: dict[str, int] = {}
    means: dict[str, list[float]] = {}
    for row in _rows(path)[1]:
        try:
            if row["level"] == "0" and not developer_rows:
                continue
            if row["module_name"] == "Dataset":
                _count(row, starts, means)
        except KeyError:
            continue
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["Operation", "Stage", "Occurrences", "Avg. time (us)", "Custom Info"])
    for title, (count, mean) in means.items():
        operation, stage, custom = title.split("::", 2)
        writer.writerow([operation, stage, int(count), mean, custom])
    return text.getvalue()


def _rows(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        return list(reader.fieldnames or ()), list(reader)


def _key(row: dict[str, str]) -> str:
    return f"{row['event']}_{row['stage']}_{row['tid']}_{row['pid']}"


def _add(row: dict[str, str], starts: dict[str, int], events: list[dict[str, Any]]) -> None:
    key, stamp_us = _key(row), int(row["time_stamp(us)"])
    mark = row["start_end"]
    if mark == _START:
        starts[key] = stamp_us
    elif mark == _END and key in starts:
        start_us = starts.pop(key)
        timed = {"ts": start_us, "dur": stamp_us - start_us, "ph": "X"}
        events.append(_event(row, timed))
    elif mark == _POINT:
        events.append(_event(row, {"ts": stamp_us, "ph": "i"}))


def _event(row: dict[str, str], timed: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": f"{row['event']}::{row['stage']}",
        "cat": row["module_name"],
        **timed,
        "pid": row["pid"],
        "tid": row["tid"],
        "args": {"parent_pid": row["parent_pid"]},
    }


def _open_event(key: str, start_us: int) -> dict[str, Any]:
    """Take name, thread and process from the key again, as MindSpore does."""
    last = key.rfind("_")
    second = key.rfind("_", 0, last - 1)
    name, tid, pid = key[:second], key[second + 1 : last], key[last + 1 :]
    return {"name": name, "pid": pid, "tid": tid, "ph": "B", "ts": start_us}


def _memory_text(header: list[str], rows: list[dict[str, str]]) -> str | None:
    if not rows:
        return None
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=header)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _count(row: dict[str, str], starts: dict[str, int], means: dict[str, list[float]]) -> None:
    key, stamp_us = _key(row), int(row["time_stamp(us)"])
    if row["start_end"] == _START:
        starts[key] = stamp_us
    elif row["start_end"] == _END and key in starts:
        duration_us = stamp_us - starts.pop(key)
        title = f"{row['event']}::{row['stage']}::{row['custom_info']}"
        mean = means.setdefault(title, [0, 0.0])
        mean[0] += 1
        mean[1] += (duration_us - mean[1]) / mean[0]
