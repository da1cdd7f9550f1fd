"""The steps in a table written by MindSpore: `step_trace_raw_{rank}_detail_time.csv`.

If the step trace is missing, as with Ascend devices, the table has the same points, in units of 10
ns. Its last row, the mean, is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.mindspore.step_trace import Reduce, StepPoints, StepTrace
from longpole.mindspore.text import CsvFile

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from longpole.mindspore.findings import Findings

__all__ = ["read_step_detail"]

_TICK_NS: Final = 10
_NEEDED: Final = ("start_point", "end_point", "fp_point", "step_num")
_DERIVED: Final = ("total", "iteration_interval", "fp_and_bp", "fp", "tail")
_START, _END = "_start_point", "_end_point"


def read_step_detail(path: Path, findings: Findings) -> StepTrace:
    """Read the table of one rank."""
    file = CsvFile(path, findings)
    spans = _collectives(file.header)
    is_training = "bp_point" in file.header
    edges = [name + edge for name in spans for edge in (_START, _END)]
    wanted = [*_NEEDED, *(["bp_point"] if is_training else []), *edges]
    file.find({name: (name,) for name in wanted}, (*_DERIVED, *spans))
    steps: list[StepPoints | None] = []
    for row in file.rows():
        if row.pop("step_num") != "-":
            times = {name: file.stamp(cell) for name, cell in row.items()}
            steps.append(_step(len(steps) + 1, times, spans))
    known = [step for step in steps if step is not None]
    return StepTrace(path, None, is_training, known)


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
        if known[name + _END]  # 0 if the step did not have it
    )
    points = (known["start_point"], known["fp_point"], known.get("bp_point"), known["end_point"])
    return StepPoints(number, *points, "", "", reduces)
