"""Training steps on a GPU: `step_trace_profiling_{rank}.txt`.

A step has a start, the points at which forward propagation starts (fp) and backward propagation
ends (bp), an end, and its collective operations. MindSpore writes one of two forms: for
asynchronous kernel launches one line per step, in nanoseconds; otherwise one line per point with
its interval in each step, in units of 10 ns.

If the step trace is missing, as with Ascend devices, `step_trace_raw_{rank}_detail_time.csv` has
the same points, in units of 10 ns. Its last row, the mean, is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from longpole.formats.mindspore.findings import FileFinding, Findings, ProfileError
from longpole.formats.mindspore.steps import Step
from longpole.formats.mindspore.text import CsvFile, TextFile

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

_POINTS: Final = 4
_LINES: Final = 3
_TICK_NS: Final = 10
_INTERVAL: Final = 3

_POINTS_HINT: Final = (
    "set PROFILING_FP_START and PROFILING_BP_END to the full names of operators, and record again"
)
_NEEDED: Final = ("start_point", "end_point", "fp_point", "step_num")
_DERIVED: Final = ("total", "iteration_interval", "fp_and_bp", "fp", "tail")
_START, _END = "_start_point", "_end_point"


class Reduce(NamedTuple):
    """A collective operation in a step, with its full name."""

    operator: str
    start_ns: int
    end_ns: int


class StepPoints(NamedTuple):
    """A step; all times in nanoseconds of one clock. `bp_ns` is None for inference."""

    number: int
    start_ns: int
    fp_ns: int
    bp_ns: int | None
    end_ns: int
    fp_operator: str
    bp_operator: str
    reduces: tuple[Reduce, ...] = ()

    @property
    def total_ns(self) -> int:
        """Time from the start to the end of the step."""
        return self.end_ns - self.start_ns

    @property
    def interval_ns(self) -> int:
        """Time from the start to the first operator of forward propagation."""
        return self.fp_ns - self.start_ns

    @property
    def fp_and_bp_ns(self) -> int:
        """Time from the start of forward to the end of backward propagation, or of the step."""
        return (self.end_ns if self.bp_ns is None else self.bp_ns) - self.fp_ns

    @property
    def tail_ns(self) -> int | None:
        """Time from the end of backward propagation to the end of the step."""
        return None if self.bp_ns is None else self.end_ns - self.bp_ns


@dataclass(frozen=True, slots=True)
class StepTrace:
    """All steps of one file; `launch` is how kernels were launched, None if not recorded."""

    path: Path
    launch: Literal["async", "sync"] | None
    is_training: bool
    steps: Sequence[StepPoints]
    findings: Sequence[FileFinding] = field(default=())

    def spans(self) -> list[Step]:
        """Return the steps as spans."""
        return [Step(step.number, step.start_ns, step.end_ns) for step in self.steps]


def read_step_trace(path: str | os.PathLike[str]) -> StepTrace:
    """Read the steps of one rank.

    Steps of a sync file do not overlap: each but the first begins at the end of the previous one.

    Raises
    ------
    ProfileError
        The file is empty (`empty_file`), or lacks points (`missing_points`).
    OSError
        The file cannot be read.
    """
    findings = Findings()
    return replace(read_steps(Path(path), findings), findings=findings.all())


def read_steps(path: Path, findings: Findings) -> StepTrace:
    """Read the steps, as `read_step_trace` does, and add to the caller's findings."""
    file = TextFile(path, findings)
    launch: Literal["async", "sync"] | None = None
    is_training = False
    found: list[StepPoints | None] = []
    points: list[_Point] = []
    for words in map(str.split, file.lines()):
        if not words:
            file.report("bad_row", "a line of spaces")
            continue
        launch = launch or ("async" if words[0].count(",") == 1 else "sync")
        is_training |= any(word.startswith("Gradients") for word in words)
        if launch == "async":
            found.append(_async_step(file, words))
        else:
            points.append(_point(file, words))
    if launch is None:
        raise ProfileError(path, "empty_file", "the step trace is empty", hint=_POINTS_HINT)
    if launch == "sync":
        found += _sync_steps(path, points, findings)
    steps = [step for step in found if step is not None]
    if not is_training:
        steps = [step._replace(bp_ns=None) for step in steps]
    numbered = [step._replace(number=place) for place, step in enumerate(steps, 1)]
    return StepTrace(path, launch, is_training, numbered)


def _async_step(file: TextFile, words: Sequence[str]) -> StepPoints | None:
    points = [word.split(",") for word in words[:_POINTS]]
    if len(points) < _POINTS or any(len(point) != 2 for point in points):  # noqa: PLR2004
        file.report("step_without_points")
        return None
    read = [file.stamp(point[1]) for point in points]
    times = [time for time in read if time is not None]
    reduces = [_reduce(file, word) for word in words[_POINTS:]]
    known = tuple(reduce for reduce in reduces if reduce is not None)
    if len(times) < _POINTS or len(known) < len(reduces):
        return None
    start, fp, bp, end = times
    return StepPoints(0, start, fp, bp, end, points[1][0], points[2][0], known)


def _reduce(file: TextFile, word: str) -> Reduce | None:
    parts = word.split(",")
    if len(parts) != _INTERVAL:
        file.report("bad_row", repr(word[:40]))
        return None
    start, end = map(file.stamp, parts[1:])
    return None if start is None or end is None else Reduce(parts[0], start, end)


class _Point(NamedTuple):
    operator: str
    spans: list[tuple[int, int]]


def _point(file: TextFile, words: Sequence[str]) -> _Point:
    """Parse the intervals of a point up to the first damaged one, after which all would shift."""
    spans = []
    for word in words[1:]:
        times = [file.stamp(part) for part in word.split(",")]
        if len(times) != 2 or None in times:  # noqa: PLR2004 (start and end)
            file.report("bad_row", repr(word[:40]))
            break
        spans.append((_TICK_NS * (times[0] or 0), _TICK_NS * (times[1] or 0)))
    return _Point(words[0], spans)


def _sync_steps(path: Path, points: Sequence[_Point], findings: Findings) -> list[StepPoints]:
    """Combine the points; a step begins at the end of the previous `end` interval."""
    if len(points) < _LINES:
        message = f"the file has {len(points)} of the three points of a step (fp, bp, end)"
        raise ProfileError(path, "missing_points", message, hint=_POINTS_HINT)
    fp, bp, end, *reduces = points
    count = min(len(point.spans) for point in points)
    if any(len(point.spans) != count for point in points):
        findings.add("steps_unequal", path)
    steps: list[StepPoints] = []
    for place in range(count):
        start_ns = end.spans[place - 1][1] if place else fp.spans[0][0]
        inside = tuple(Reduce(each.operator, *each.spans[place]) for each in reduces)
        times = (start_ns, fp.spans[place][0], bp.spans[place][1], end.spans[place][1])
        steps.append(StepPoints(0, *times, fp.operator, bp.operator, inside))
    return steps


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
