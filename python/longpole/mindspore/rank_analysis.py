"""Everything that one rank's files say, and the files that are made of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from longpole.mindspore.findings import FileFinding, Findings
from longpole.mindspore.flops import FlopsSummary, read_flops
from longpole.mindspore.host_info import HostInfo, read_host_info
from longpole.mindspore.memory import MemorySummary, host_memory, read_memory_record
from longpole.mindspore.minddata import DataPipeline, read_data_pipeline
from longpole.mindspore.operators import OpAnalysis, analyse_operators
from longpole.mindspore.output import write_new
from longpole.mindspore.refusals import refuse
from longpole.mindspore.step_choice import chosen_steps, window_of
from longpole.mindspore.step_detail import read_step_detail
from longpole.mindspore.step_trace import StepTrace, read_steps
from longpole.mindspore.tables import dataset_text, memory_text, operators_text, steps_text
from longpole.mindspore.timeline import host_info_trace, rank_timeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from longpole.mindspore.layouts import RankFiles

__all__ = ["RankAnalysis", "analyse_rank", "write_rank"]

_TIMED = ("cpu_op_execute_timestamp", "gpu_op_execute_timestamp", "output_timeline_data")


@dataclass(frozen=True, slots=True)
class RankAnalysis:
    """What one rank's files say; None where it has no such file."""

    files: RankFiles
    operators: OpAnalysis | None = None
    steps: StepTrace | None = None
    host_info: HostInfo | None = None
    pipeline: DataPipeline | None = None
    memory: Sequence[MemorySummary] = ()
    flops: FlopsSummary | None = None
    window_ns: tuple[int, int] | None = None
    """The stretch that the timeline is cut to; None is all."""
    written: Sequence[Path] = ()
    findings: Sequence[FileFinding] = field(default=())

    @property
    def rank(self) -> int:
        """Its number."""
        return self.files.rank

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values."""
        operators = self.operators.frame().to_dicts() if self.operators else None
        return {
            "rank": self.rank,
            "folder": str(self.files.folder),
            "operators": operators,
            "steps": None if self.steps is None else [_plain(step) for step in self.steps.steps],
            "dataset": None if self.host_info is None else _dataset(self.host_info),
            "pipeline": None if self.pipeline is None else self.pipeline.to_dict(),
            "memory": [summary.to_dict() for summary in self.memory],
            "flops": None if self.flops is None else self.flops.to_dict(),
            "written": [str(path) for path in self.written],
            "findings": [finding.to_dict() for finding in self.findings],
        }


def _plain(step: Any) -> dict[str, Any]:
    names = ("number", "start_ns", "end_ns", "total_ns", "interval_ns", "fp_and_bp_ns", "tail_ns")
    return {name: getattr(step, name) for name in names}


def _dataset(info: HostInfo) -> list[dict[str, Any]]:
    names = ("operation", "stage", "custom_info", "count", "mean_us")
    return [{name: getattr(stage, name) for name in names} for stage in info.dataset]


def analyse_rank(
    files: RankFiles, steps: Sequence[int] | None = None, *, developer_rows: bool = True
) -> RankAnalysis:
    """Read all that can be read of one rank."""
    findings = Findings()
    refuse(files, findings)
    host = files.get("host_info")
    info = read_host_info(host, developer_rows=developer_rows) if host else None
    operators = analyse_operators(files) if _has_operators(files, findings) else None
    step_trace = _steps(files, findings)
    window_ns = None if steps is None else window_of(files, step_trace, steps)
    if step_trace is not None and steps is not None:
        step_trace = chosen_steps(step_trace, steps)
    pipeline = read_data_pipeline(files) if files.get("pipeline_profiling") else None
    memory = _memory(files, info)
    flops = files.get("flops")
    summary = read_flops(flops, files.rank) if flops else None
    parts = (info, operators, step_trace, pipeline, *memory, summary)
    found = [each for part in parts if part is not None for each in part.findings]
    return RankAnalysis(
        files,
        operators,
        step_trace,
        info,
        pipeline,
        memory,
        summary,
        window_ns,
        findings=_unique([*found, *findings.all()]),
    )


def _has_operators(files: RankFiles, findings: Findings) -> bool:
    """Whether there are operators with their launches; one without the other is a finding."""
    having = [side for side in ("cpu", "gpu") if files.get(f"{side}_op_detail_info")]
    missing = [f"{side}_framework" for side in having if not files.get(f"{side}_framework")]
    for kind in missing:
        findings.add("missing_file", files.folder, None, f"{kind}_{files.rank}.txt")
    return bool(having) and not missing


def _steps(files: RankFiles, findings: Findings) -> StepTrace | None:
    """Read the step trace, or the table that MindSpore made of it."""
    trace, detail = files.get("step_trace_profiling"), files.get("step_trace_raw_detail_time")
    if trace is not None:
        return read_steps(trace, findings)
    return read_step_detail(detail, findings) if detail is not None else None


def _memory(files: RankFiles, info: HostInfo | None) -> list[MemorySummary]:
    record = files.get("cpu_ms_memory_record")
    of_process = host_memory(info) if info is not None else None
    found = [read_memory_record(record)] if record else []
    return [*found, of_process] if of_process is not None else found


def _unique(findings: Iterable[FileFinding]) -> list[FileFinding]:
    """Leave out what was found twice, because a file was read twice."""
    return list({(found.code, found.file): found for found in findings}.values())


def write_rank(
    found: RankAnalysis,
    output: Path,
    *,
    pretty: bool = False,
    limit_bytes: int | None = None,
) -> RankAnalysis:
    """Write the files of one rank; give the analysis with their names and what was found."""
    findings = Findings()
    indent = 1 if pretty else None
    pieces = _contents(found, findings, indent, limit_bytes)
    written = [write_new(output / name, content) for name, content in pieces]
    return replace(found, written=written, findings=_unique([*found.findings, *findings.all()]))


def _contents(
    found: RankAnalysis, findings: Findings, indent: int | None, limit_bytes: int | None
) -> Iterator[tuple[str, str | Iterable[bytes]]]:
    rank, files = found.rank, found.files
    if any(map(files.get, _TIMED)):
        window_ns = found.window_ns
        trace = rank_timeline(files, findings, limit_bytes=limit_bytes, between_ns=window_ns)
        yield f"timeline_{rank}.json", trace
    if found.operators is not None:
        yield f"operators_{rank}.csv", operators_text(found.operators.rows)
    if found.steps is not None:
        yield f"steps_{rank}.csv", steps_text(found.steps)
    if found.host_info is not None:
        yield f"host_info_{rank}.json", host_info_trace(found.host_info)
        yield f"dataset_{rank}.csv", dataset_text(found.host_info)
        if found.host_info.memory:
            yield f"host_memory_{rank}.csv", memory_text(found.host_info)
    more = {"data_pipeline": found.pipeline, "flops": found.flops}
    for name, part in more.items():
        if part is not None:
            yield f"{name}_{rank}.json", json.dumps(part.to_dict(), indent=indent)
    if found.memory:
        peaks = [summary.to_dict() for summary in found.memory]
        yield f"memory_{rank}.json", json.dumps(peaks, indent=indent)
