"""The steps in a table that MindSpore made: `step_trace_raw_{rank}_detail_time.csv`.

Where the trace that the table was made from is missing, as with Ascend devices, the table has the
same points, in units of 10 ns. Its last row, the mean, is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.mindspore.step_trace import Reduce, StepPoints, StepTrace
from longpole.mindspore.text import Columns, stamp, table_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from longpole.mindspore.findings import Findings

__all__ = ["read_step_detail"]

_TICK_NS: Final = 10
_NEEDED: Final = {
    "start": ("start_point",),
    "end": ("end_point",),
    "fp": ("fp_point",),
    "number": ("step_num",),
}
_DERIVED: Final = ("bp_point", "total", "iteration_interval", "fp_and_bp", "fp", "tail")
_START, _END = "_start_point", "_end_point"


def read_step_detail(path: Path, findings: Findings) -> StepTrace:
    """Read the table of one rank.

    Raises
    ------
    ProfileError
        The file is empty, or a column is missing.
    OSError
        The file cannot be read.
    """
    header, rows = table_of(path, findings)
    names = [name.strip() for name in header]
    spans = _collectives(names)
    named = [part for name in spans for part in (name, name + _START, name + _END)]
    columns = Columns(path, header, _NEEDED, findings, known=(*_DERIVED, *named))
    steps: list[StepPoints | None] = []
    for line, row in columns.whole(rows):
        if row[columns.place("number")].strip() != "-":
            cells = dict(zip(names, row, strict=True))
            wanted = ["start_point", "fp_point", "bp_point", "end_point"]
            wanted += [name + edge for name in spans for edge in (_START, _END)]
            times = {
                name: stamp(cells[name], path, line, findings) for name in wanted if name in cells
            }
            steps.append(_step(len(steps) + 1, times, spans))
    known = [step for step in steps if step is not None]
    return StepTrace(path, None, "bp_point" in names, known)


def _collectives(names: Sequence[str]) -> list[str]:
    starts = (name.removesuffix(_START) for name in names if name.endswith(_START))
    return [name for name in starts if name and name + _END in names]


def _step(number: int, times: dict[str, int | None], spans: Sequence[str]) -> StepPoints | None:
    known = {name: _TICK_NS * time for name, time in times.items() if time is not None}
    if len(known) != len(times):
        return None
    reduces = tuple(
        Reduce(name, known[name + _START], known[name + _END])
        for name in spans
        if known[name + _END]  # 0 where the step did not have it
    )
    points = (known["start_point"], known["fp_point"], known.get("bp_point"), known["end_point"])
    return StepPoints(number, *points, "", "", reduces)
