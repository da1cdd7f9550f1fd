"""Reads and analyses all files of one rank, and writes the results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from longpole.formats.mindspore.executions import FlopsSummary, read_executions, read_flops
from longpole.formats.mindspore.findings import FileFinding, Findings, ProfileError
from longpole.formats.mindspore.host_info import (
    DatasetStage,
    HostInfo,
    read_host_info,
)
from longpole.formats.mindspore.layouts import refuse
from longpole.formats.mindspore.minddata import (
    DataPipeline,
    read_data_pipeline,
)
from longpole.formats.mindspore.operators import OpRow, analyse_operators
from longpole.formats.mindspore.output import write_new
from longpole.formats.mindspore.step_trace import (
    StepPoints,
    StepTrace,
    read_step_detail,
    read_steps,
)
from longpole.formats.mindspore.steps import Step, inferred_steps
from longpole.formats.mindspore.tables import (
    MemorySummary,
    dataset_text,
    host_memory,
    memory_text,
    operators_text,
    read_memory_record,
    steps_text,
)
from longpole.formats.mindspore.timeline import host_info_trace, rank_timeline
from longpole.words.data import HIDDEN, Data

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from longpole.formats.mindspore.layouts import RankFiles

_TIMED = ("cpu_op_execute_timestamp", "gpu_op_execute_timestamp", "output_timeline_data")


@dataclass(frozen=True, slots=True)
class Asked:
    """What to analyse of a rank; `steps` None means all."""

    steps: Sequence[int] | None
    developer_rows: bool
    pretty: bool


@dataclass(frozen=True, slots=True)
class StepTimes:
    """A step and its parts; see `StepPoints`."""

    number: int
    start_ns: int
    end_ns: int
    total_ns: int
    interval_ns: int
    """Time from the start to the first operator of forward propagation."""
    fp_and_bp_ns: int
    """Time from the start of forward to the end of backward propagation, or of the step."""
    tail_ns: int | None
    """Time from the end of backward propagation to the end of the step; None for inference."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The contents of one rank's files, for writing files."""

    files: RankFiles
    host_info: HostInfo | None
    step_trace: StepTrace | None
    window_ns: tuple[int, int] | None
    """The time span to which the timeline is cut; None for all."""


@dataclass(frozen=True, slots=True)
class RankAnalysis(Data):
    """The analysis of one rank's files; None for missing files."""

    rank: int
    folder: Path
    operators: Sequence[OpRow] | None
    steps: Sequence[StepTimes] | None
    dataset: Sequence[DatasetStage] | None
    pipeline: DataPipeline | None
    memory: Sequence[MemorySummary]
    flops: FlopsSummary | None
    written: Sequence[Path]
    findings: Sequence[FileFinding]
    reading: Reading = field(repr=False, metadata=HIDDEN)


def analyse_rank(files: RankFiles, asked: Asked) -> RankAnalysis:
    """Read everything readable of one rank."""
    findings, of_steps = Findings(), Findings()
    refuse(files, of_steps)
    for other in files.others:
        findings.add("several_profiles", files.folder, None, f"not read: {other}")
    host_info = _host_info(files, findings, asked)
    operators = None
    if _has_operators(files, of_steps):
        operators = analyse_operators(files)
        findings.include(operators.findings)
    trace = _steps(files, of_steps)
    window_ns = None
    if asked.steps is not None:
        trace, window_ns = cut_to_steps(files, trace, asked.steps)
    has_pipeline = files.get("pipeline_profiling") is not None
    pipeline = read_data_pipeline(files, findings) if has_pipeline else None
    record, flops = files.get("cpu_ms_memory_record"), files.get("flops")
    of_allocator = read_memory_record(record, findings) if record else None
    of_process = host_memory(host_info) if host_info is not None else None
    summary = read_flops(flops, files.rank, findings) if flops else None
    findings.include(of_steps.all())
    return RankAnalysis(
        rank=files.rank,
        folder=files.folder,
        operators=None if operators is None else operators.rows,
        steps=None if trace is None else [_times(step) for step in trace.steps],
        dataset=None if host_info is None else host_info.dataset,
        pipeline=pipeline,
        memory=[peak for peak in (of_allocator, of_process) if peak is not None],
        flops=summary,
        written=(),
        findings=findings.all(),
        reading=Reading(files, host_info, trace, window_ns),
    )


def _host_info(files: RankFiles, findings: Findings, asked: Asked) -> HostInfo | None:
    path = files.get("host_info")
    if not path:
        return None
    host_info = read_host_info(path, developer_rows=asked.developer_rows)
    findings.include(host_info.findings)
    return host_info


def _has_operators(files: RankFiles, findings: Findings) -> bool:
    """Whether operators and their launches exist; one without the other is a finding."""
    having = [side for side in ("cpu", "gpu") if files.get(f"{side}_op_detail_info")]
    missing = [f"{side}_framework" for side in having if not files.get(f"{side}_framework")]
    for kind in missing:
        findings.add("missing_file", files.folder, None, f"{kind}_{files.rank}.txt")
    return bool(having) and not missing


def _steps(files: RankFiles, findings: Findings) -> StepTrace | None:
    """Read the step trace, or MindSpore's table of it."""
    trace, detail = files.get("step_trace_profiling"), files.get("step_trace_raw_detail_time")
    if trace is not None:
        return read_steps(trace, findings)
    return read_step_detail(detail, findings) if detail is not None else None


def _times(step: StepPoints) -> StepTimes:
    parts = (step.total_ns, step.interval_ns, step.fp_and_bp_ns, step.tail_ns)
    return StepTimes(step.number, step.start_ns, step.end_ns, *parts)


def write_rank(found: RankAnalysis, output: Path, asked: Asked) -> RankAnalysis:
    """Write the files of one rank; return the analysis with their names and the findings."""
    findings = Findings()
    findings.include(found.findings)
    contents = _contents(found, findings, asked)
    written = [write_new(output / name, content) for name, content in contents]
    return replace(found, written=written, findings=findings.all())


def _contents(
    found: RankAnalysis, findings: Findings, asked: Asked
) -> Iterator[tuple[str, str | Iterable[bytes]]]:
    rank, reading, host_info = found.rank, found.reading, found.reading.host_info
    if any(map(reading.files.get, _TIMED)):
        of_timeline = Findings()
        timeline = rank_timeline(
            reading.files,
            of_timeline,
            developer_rows=asked.developer_rows,
            between_ns=reading.window_ns,
        )
        yield f"timeline_{rank}.json", timeline
        findings.include(of_timeline.all())
    if found.operators is not None:
        yield f"operators_{rank}.csv", operators_text(found.operators)
    if reading.step_trace is not None:
        yield f"steps_{rank}.csv", steps_text(reading.step_trace)
    if host_info is not None:
        yield f"host_info_{rank}.json", host_info_trace(host_info)
        yield f"dataset_{rank}.csv", dataset_text(host_info.dataset)
        if host_info.memory:
            yield f"host_memory_{rank}.csv", memory_text(host_info)
    indent = 1 if asked.pretty else None
    more = {"data_pipeline": found.pipeline, "flops": found.flops}
    for name, part in more.items():
        if part is not None:
            yield f"{name}_{rank}.json", json.dumps(asdict(part), indent=indent)
    if found.memory:
        yield f"memory_{rank}.json", json.dumps(list(map(asdict, found.memory)), indent=indent)


S = TypeVar("S", Step, StepPoints)


def cut_to_steps(
    files: RankFiles, trace: StepTrace | None, numbers: Sequence[int]
) -> tuple[StepTrace | None, tuple[int, int] | None]:
    """Keep some steps of a step trace; return their first start and last end in ns.

    Without a step trace, the steps are inferred from the timeline of the CPU.

    Raises
    ------
    ProfileError
        None of the steps exists (`no_such_step`).
    """
    path = files.get("cpu_op_execute_timestamp")
    if trace is not None:
        trace = replace(trace, steps=_chosen(trace.path, trace.steps, numbers))
        spans = trace.spans()
    elif path is not None:
        runs = read_executions(path, Findings())
        spans = _chosen(path, inferred_steps(runs, runs.by_start()), numbers)
    else:
        return None, None
    return trace, (spans[0].start_ns, max(step.end_ns for step in spans))


def _chosen(path: Path, steps: Sequence[S], numbers: Sequence[int]) -> list[S]:
    chosen = [step for step in steps if step.number in set(numbers)]
    if not chosen:
        message = f"none of the steps {numbers[0]} to {numbers[-1]} is there"
        known = f"the profile has the steps 1 to {len(steps)}"
        hint = known if steps else "the profile marks no steps"
        raise ProfileError(path, "no_such_step", message, hint=hint)
    return chosen
