"""MindSpore's `step_trace_raw_{rank}_detail_time.csv` and its point info, byte for byte.

Times are in units of 10 ns. Where kernels are launched synchronously, a step begins where the last
operator of the one before *started*, as in MindSpore. With collective operations in such a file,
MindSpore itself ends in an IndexError; the columns of them are then written as in the other shape.
"""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["compatible_point_info", "compatible_step_trace"]

_POINTS: Final = 4
_MEANT: Final = "step_num"


def compatible_step_trace(path: Path, *, is_training: bool) -> str:
    """Give the text of `step_trace_raw_{rank}_detail_time.csv`."""
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    steps = _async_steps(lines) if _is_async(lines) else _sync_steps(lines)
    rows = [_row(number, step) for number, step in enumerate(steps, 1)]
    header = list(dict.fromkeys(name for row in rows for name in row))
    table: list[list[int | str]] = [[row.get(name, 0) for name in header] for row in rows]
    table.append([_mean(name, rows) for name in header])
    if not is_training:
        header, table = _without_backward(header, table)
    text = io.StringIO()
    csv.writer(text).writerows([header, *table] if rows else [])
    return text.getvalue()


def compatible_point_info(path: Path, *, is_training: bool) -> str:
    """Give the text of `step_trace_point_info_{rank}.json`."""
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if _is_async(lines):
        names = [(_name(line[1]), _name(line[2])) for line in lines]
    else:
        names = [(lines[0][0], lines[1][0])]
    points = [
        {"fp_start": fp, "bp_end": bp} if is_training else {"fp_start": fp} for fp, bp in names
    ]
    return json.dumps(points if _is_async(lines) else points[0])


def _is_async(lines: Sequence[Sequence[str]]) -> bool:
    return bool(lines) and lines[0][0].count(",") == 1


def _name(word: str) -> str:
    return word.partition(",")[0]


_Step = tuple[list[int], list[tuple[str, int, int]]]
"""Start, fp, bp and end of a step, and its collective operations; in units of 10 ns."""


def _async_steps(lines: Sequence[Sequence[str]]) -> list[_Step]:
    steps: list[_Step] = []
    names: list[str] = []
    for line in lines:
        points = [int(word.split(",")[1][:-1]) for word in line[:_POINTS]]
        words = [word.split(",") for word in line[_POINTS:]]
        names += [word[0].rpartition("/")[2] for word in words]
        # MindSpore names them by their place in the first step.
        reduces = [(names[n], int(word[1][:-1]), int(word[2][:-1])) for n, word in enumerate(words)]
        steps.append((points, reduces))
    return steps


def _sync_steps(lines: Sequence[Sequence[str]]) -> list[_Step]:
    fp, bp, end, *reduces = ([_interval(word) for word in line[1:]] for line in lines)
    names = [line[0].rpartition("/")[2] for line in lines[3:]]
    starts = [fp[0], *end]
    return [
        (
            [starts[n][0], fp[n][0], bp[n][1], end[n][1]],
            [(name, each[n][0], each[n][1]) for name, each in zip(names, reduces, strict=True)],
        )
        for n in range(len(fp))
    ]


def _interval(word: str) -> tuple[int, int]:
    start, end = word.split(",")
    return int(start), int(end)


def _row(number: int, step: _Step) -> dict[str, int]:
    (start, fp, bp, end), reduces = step
    row = {
        _MEANT: number,
        "start_point": start,
        "end_point": end,
        "total": end - start,
        "fp_point": fp,
        "bp_point": bp,
        "iteration_interval": fp - start,
        "fp_and_bp": bp - fp,
        "tail": end - bp,
    }
    for place, (name, reduce_start, reduce_end) in enumerate(reduces):
        field = f"stream_ops_{place}_{name}"
        row[field] = reduce_end - reduce_start
        row[f"{field}_start_point"] = reduce_start
        row[f"{field}_end_point"] = reduce_end
    return row


def _mean(name: str, rows: Sequence[Mapping[str, int]]) -> int | str:
    """Give the mean, rounded half to even; `-` in place of the number of the step."""
    if name == _MEANT:
        return "-"
    whole, rest = divmod(sum(row.get(name, 0) for row in rows), len(rows))
    return whole + (2 * rest > len(rows) or (2 * rest == len(rows) and whole % 2 == 1))


def _without_backward(
    header: list[str], table: list[list[int | str]]
) -> tuple[list[str], list[list[int | str]]]:
    """Leave out bp and the tail, as MindSpore does of an inference: by their places."""
    backward, forward, tail = 5, -2, -1
    header[forward] = "fp"
    for row in table:
        row[forward] = int(row[forward]) + int(row[tail])
    shorter = [[*row[:backward], *row[backward + 1 : tail]] for row in table]
    return [*header[:backward], *header[backward + 1 : tail]], shorter
