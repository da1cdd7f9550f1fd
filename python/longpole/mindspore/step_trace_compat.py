"""MindSpore's `step_trace_raw_{rank}_detail_time.csv` and its point info, byte for byte.

Times are in units of 10 ns. With collective operations in a file of synchronous launches, MindSpore
itself raises an IndexError; their columns are then written as in the other form.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from longpole.mindspore.output import csv_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.mindspore.step_trace import StepPoints, StepTrace

__all__ = ["compatible_point_info", "compatible_step_trace"]

_TICK_NS: Final = 10
_NUMBER: Final = "step_num"


def compatible_step_trace(trace: StepTrace, *, is_training: bool) -> str:
    """Return the text of `step_trace_raw_{rank}_detail_time.csv`."""
    # MindSpore names collectives by their position in the first step.
    names = [reduce.operator.rpartition("/")[2] for step in trace.steps for reduce in step.reduces]
    header: list[str] = []
    table: list[list[int | str]] = []
    for step in trace.steps:
        row = _row(step, names)
        header += [name for name in row if name not in header]
        # A row has as many cells as the header had when MindSpore read its step.
        table.append([row.get(name, 0) for name in header])
    if not table:
        return ""
    table.append(_means(table))
    if not is_training:
        header, table = _without_backward(header, table)
    return csv_text([header, *table])


def compatible_point_info(trace: StepTrace, *, is_training: bool) -> str:
    """Return the text of `step_trace_point_info_{rank}.json`."""
    points = [
        {"fp_start": step.fp_operator} | ({"bp_end": step.bp_operator} if is_training else {})
        for step in trace.steps
    ]
    return json.dumps(points if trace.launch == "async" else points[0])


def _row(step: StepPoints, names: Sequence[str]) -> dict[str, int | str]:
    """Return the columns of a step; times of collectives are strings, as in MindSpore."""
    edges = (step.start_ns, step.fp_ns, step.bp_ns or 0, step.end_ns)
    start, fp, bp, end = (time_ns // _TICK_NS for time_ns in edges)
    row: dict[str, int | str] = {
        _NUMBER: step.number,
        "start_point": start,
        "end_point": end,
        "total": end - start,
        "fp_point": fp,
        "bp_point": bp,
        "iteration_interval": fp - start,
        "fp_and_bp": bp - fp,
        "tail": end - bp,
    }
    for place, reduce in enumerate(step.reduces):
        field = f"stream_ops_{place}_{names[place]}"
        first, last = reduce.start_ns // _TICK_NS, reduce.end_ns // _TICK_NS
        row[field] = last - first
        row[f"{field}_start_point"], row[f"{field}_end_point"] = str(first), str(last)
    return row


def _means(table: Sequence[Sequence[int | str]]) -> list[int | str]:
    """Return means, rounded half to even, up to the length of the shortest row."""
    columns = list(zip(*table, strict=False))[1:]
    means = (round(Fraction(sum(map(int, column)), len(table))) for column in columns)
    return ["-", *means]


def _without_backward(
    header: list[str], table: list[list[int | str]]
) -> tuple[list[str], list[list[int | str]]]:
    """Remove bp and the tail by position, as MindSpore does for inference.

    With collectives, the last two columns are theirs, and MindSpore joins their strings.
    """
    backward, forward, tail = 5, -2, -1
    header[forward] = "fp"
    for row in table:
        first, second = row[forward], row[tail]
        is_text = isinstance(first, str)
        row[forward] = f"{first}{second}" if is_text else int(first) + int(second)
    shorter = [[*row[:backward], *row[backward + 1 : tail]] for row in table]
    return [*header[:backward], *header[backward + 1 : tail]], shorter
