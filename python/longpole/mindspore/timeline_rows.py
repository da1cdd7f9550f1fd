"""The rows of a timeline as computed by MindSpore 2.0 to 2.3, in floating point.

This loses up to 256 ns of the timestamps of a GPU; `timeline` has the same events without this
fault.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from longpole.opening import open_text, read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from longpole.mindspore.layouts import RankFiles

__all__ = ["Row", "Rows", "timeline_rows"]

_OVERLAP: Final = 12_000
_LANES: Final = {
    "receive_op_not_overlapped": 7997,
    "exclude_receive_op": 7998,
    "computation_op": 7999,
    "communication_not_overlapped": 8000,
    "communication": 8001,
    "free_time": 8002,
}
_PER_NS: Final = 1e-3
"""Microseconds in a nanosecond, as a factor in MindSpore."""


class Row(NamedTuple):
    """A row of the timeline: its start in ns, duration in us.

    `more` has the arguments of a kernel, or the process of a computed row.
    """

    name: str
    lane: str | int
    start: float
    duration: float
    more: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows in MindSpore's order, and the contents of its other files.

    `keys` are the names of kernel arguments, None on the CPU. `cluster` has the columns of the
    cluster file in microseconds, None without collectives.
    """

    rows: Sequence[Row]
    n_operators: int
    depth: int
    keys: Sequence[str] | None = None
    cluster: Mapping[str, Sequence[float]] | None = None


_start = attrgetter("start")


def timeline_rows(files: RankFiles) -> Rows:
    """Compute the rows of a GPU if the profile has one, else of the CPU."""
    return _of_gpu(files) if files.get("gpu_op_execute_timestamp") else _of_cpu(files)


def _of_cpu(files: RankFiles) -> Rows:
    runs = sorted(_runs(files, "cpu_op_execute_timestamp"), key=_start)
    first, last = _step_operators(runs)
    rows = [*runs, *_scope_bars(runs, last), *_steps(runs, first, last)]
    rows.sort(key=lambda row: (row.start, row.lane))
    rows += [*_merged(runs, "computation_op").bars, *_merged(runs, "free_time", gaps=True).gaps]
    return Rows(rows, len(_lines(files, "cpu_op_execute_timestamp")), _depth(runs))


def _of_gpu(files: RankFiles) -> Rows:
    trace = [line.split() for line in _lines(files, "step_trace_profiling")]
    is_async = bool(trace) and trace[0][0].count(",") == 1
    reduces = trace[0][4:] if is_async else []
    runs, collectives = _without_collectives(_runs(files, "gpu_op_execute_timestamp"), reduces)
    n_operators = len(_lines(files, "gpu_op_execute_timestamp"))
    if files.get("cpu_op_execute_timestamp") is not None:
        runs += _runs(files, "cpu_op_execute_timestamp", _clock_offset_ns(files))
        n_operators += len(_lines(files, "cpu_op_execute_timestamp"))
    runs.sort(key=_start)
    first, last = _step_operators(runs)
    steps = _steps_of_trace(trace) if is_async else _steps(runs, first, last)
    kernels, keys = _kernels(files)
    rows, cluster = list(runs), None
    if collectives:
        computing = [kernel for kernel in kernels if not kernel.name.startswith("nccl")]
        added, cluster = _overlap(runs, computing, collectives, steps)
        rows += [*added, *collectives]
        rows.sort(key=_start)
    rows += [*_scope_bars(runs, last), *steps]
    rows.sort(key=_start)
    rows = sorted([*rows, *kernels], key=_start)
    return Rows(rows, n_operators, _depth(runs), keys, cluster)


def _without_collectives(
    runs: Iterable[Row], reduces: Iterable[str]
) -> tuple[list[Row], list[Row]]:
    """Separate the runs of collectives, which the step trace names as `reduces`."""
    names = {word.partition(",")[0].rpartition("/")[2] for word in reduces}
    others: list[Row] = []
    collectives: list[Row] = []
    for run in runs:
        is_collective = run.name.strip().rpartition("/")[2] in names
        (collectives if is_collective else others).append(run)
    return others, sorted(collectives, key=_start)


def _lines(files: RankFiles, kind: str) -> list[str]:
    return read_text(files.need(kind), is_named=False).splitlines()


def _runs(files: RankFiles, kind: str, offset_ns: int = 0) -> Iterator[Row]:
    """Yield runs of operators; CPU times are divided to convert ms to us, as in MindSpore."""
    unit = _PER_NS if kind.startswith("cpu_") else 1
    for line in _lines(files, kind):
        parts = line.strip().split(";")
        for time in parts[-1].split(" "):
            start, duration, *thread = time.split(",")
            lane = parts[1] + "".join(thread[:1] if unit != 1 else ())
            yield Row(parts[0], lane, float(int(start) + offset_ns), float(duration) / unit)


def _clock_offset_ns(files: RankFiles) -> int:
    host, device = (int(line.rpartition(":")[2]) for line in _lines(files, "start_time")[:2])
    return device - host


def _kernels(files: RankFiles) -> tuple[list[Row], list[str]]:
    with open_text(files.need("gpu_activity_data"), is_named=False, newline="") as file:
        header, *rows = csv.reader(file)
    args = {row[0]: (*row[1:3], *row[4:6]) for row in rows}
    kernels = []
    for line in _lines(files, "activity_execute_timestamp"):
        name, stream, start, duration = line.split(";")
        kernels.append(Row(name, stream, float(start), float(duration), args[name]))
    return kernels, [*header[1:3], *header[4:6]]


def _depth(runs: Sequence[Row]) -> int:
    return max((run.name.count("/") for run in runs), default=0)


def _step_operators(runs: Sequence[Row]) -> tuple[str, str]:
    """Return the first operator, and the last one before it occurs again."""
    if not runs:
        return "", ""
    skip = int(runs[0].name.startswith("Default/InitDataSetQueue"))
    first = last = runs[skip].name
    for run in runs[skip + 1 :]:
        if run.name == first:
            break
        last = run.name
    return first, last


def _steps(runs: Sequence[Row], first: str, last: str) -> list[Row]:
    steps: list[Row] = []
    start = 0.0
    for run in runs:
        if run.name == first:
            start = run.start
        if run.name == last:
            duration = (run.start - start) * _PER_NS + run.duration
            steps.append(Row(str(len(steps) + 1), "Steps", start, duration))
    return steps


def _steps_of_trace(trace: Sequence[Sequence[str]]) -> list[Row]:
    steps = []
    for number, words in enumerate(trace, 1):
        start, end = (float(words[place].split(",")[1]) for place in (0, 3))
        steps.append(Row(str(number), "Steps", start, (end - start) / 1e3))
    return steps


def _scope_bars(runs: Sequence[Row], last: str) -> Iterator[Row]:
    """Yield each sequence of operators in one scope: `{level}-{scope}`.

    A span ends if the next operator has another scope, at the operator `last` of a step, and at the
    end.
    """
    for subgraph in ("Default", "Gradients", "recompute_Default"):
        bars = list(_closed(runs, subgraph, last))
        yield from sorted(bars, key=lambda bar: (bar.start, int(bar.name.partition("-")[0])))


def _closed(runs: Sequence[Row], subgraph: str, last: str) -> Iterator[Row]:
    opened: dict[str, list[Row]] = {}
    for place, run in enumerate(runs, 1):
        scopes = _scopes(run.name, subgraph)
        for scope in scopes:
            opened.setdefault(scope, [run, run])[1] = run
        ends = place == len(runs) or run.name == last
        for scope in [scope for scope in opened if ends or scope not in scopes]:
            start, end = opened.pop(scope)
            duration = (end.start - start.start) * _PER_NS + end.duration
            yield Row(scope, "Scope Name", start.start, duration)


def _scopes(name: str, subgraph: str) -> list[str]:
    path = name.split("/")[:-1]
    if name.startswith("Default/InitDataSetQueue") or not path or path[0] != subgraph:
        return []
    return [f"{level}-{scope}" for level, scope in enumerate(path)]


class _Merged(NamedTuple):
    parts: list[tuple[float, float]]
    gaps: list[Row]
    bars: list[Row]


def _merged(runs: Sequence[Row], name: str, *, gaps: bool = False) -> _Merged:
    """Merge adjacent spans; with `gaps`, the returned parts are those in between."""
    edges: list[float] = []
    for run in runs:
        end = run.start + run.duration / _PER_NS
        if not edges or run.start > edges[-1]:
            edges += [run.start, end]
        else:
            edges[-1] = max(edges[-1], end)
    bars = list(zip(edges[::2], edges[1::2], strict=True))
    between = list(zip(edges[1:-1:2], edges[2:-1:2], strict=True))
    parts = between if gaps else bars
    return _Merged(parts, _computed(name, parts), _computed(name, bars))


def _computed(name: str, spans: Sequence[tuple[float, float]]) -> list[Row]:
    lane = _LANES[name]
    return [Row(name, lane, start, (end - start) * _PER_NS, (_OVERLAP,)) for start, end in spans]


def _overlap(
    runs: Sequence[Row],
    kernels: Sequence[Row],
    collectives: Sequence[Row],
    steps: Sequence[Row],
) -> tuple[list[Row], dict[str, list[float]]]:
    """Return the rows about communication, and the columns of the cluster file."""
    communication = _merged(collectives, "communication")
    computing = sorted([*runs, *kernels], key=_start)
    compute = _merged(computing, "computation_op", gaps=True)
    alone = _common(compute.parts, communication.parts, "communication_not_overlapped")
    free = _merged(sorted([*computing, *collectives], key=_start), "free_time", gaps=True)
    receives = [each for each in [*runs, *collectives] if "Receive-op" in each.name]
    receives.sort(key=_start)
    others = [each for each in collectives if "Receive-op" not in each.name]
    receive_alone = _common(
        compute.parts, _merged(receives, "communication").parts, "receive_op_not_overlapped"
    )
    other_alone = _common(
        compute.parts, _merged(others, "communication").parts, "exclude_receive_op"
    )
    cluster = _cluster(steps, alone, receive_alone if receives else None, other_alone)
    return [*alone, *compute.bars, *communication.bars, *free.gaps], cluster


def _common(
    first: Sequence[tuple[float, float]], second: Sequence[tuple[float, float]], name: str
) -> list[Row]:
    """Return rows for the time covered by spans of both."""
    found = []
    at_first, at_second = 0, 0
    while at_first < len(first) and at_second < len(second):
        (first_start, first_end), (second_start, second_end) = first[at_first], second[at_second]
        start, end = max(first_start, second_start), min(first_end, second_end)
        if start < end:
            found.append((start, end))
        if first_end >= second_end:
            at_second += 1
        else:
            at_first += 1
    return _computed(name, found)


def _cluster(
    steps: Sequence[Row],
    alone: Sequence[Row],
    receives: Sequence[Row] | None,
    others: Sequence[Row],
) -> dict[str, list[float]]:
    waits = _by_step(alone, steps)
    columns = {
        "computation_time": _without(steps, waits),
        "communication_alone_time": waits,
    }
    if receives is not None:
        apart = _by_step(receives, steps)
        columns["stage_time"] = _without(steps, apart)
        columns["receive_alone_time"] = apart
        columns["collective_communication_alone_time"] = _by_step(others, steps)
    if len(steps) > 1:
        for values in columns.values():
            values.append(sum(values[1:]) / (len(steps) - 1))
    return columns


def _without(steps: Sequence[Row], waits: Sequence[float]) -> list[float]:
    return [step.duration - wait for step, wait in zip(steps, waits, strict=False)]


def _by_step(parts: Sequence[Row], steps: Sequence[Row]) -> list[float]:
    sums, place, current = [], 0, 0.0
    end = steps[0].start + steps[0].duration * 1e3
    for part in parts:
        if part.start > end:
            sums.append(current)
            place += 1
            if place >= len(steps):
                break
            end = steps[place].start + steps[place].duration * 1e3
            current = 0.0
        current += part.duration
    return [*sums, current]
