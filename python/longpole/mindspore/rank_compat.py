"""Writes the same files of one rank as MindSpore r2.3, with its names, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.mindspore.errors import ProfileError
from longpole.mindspore.findings import Findings
from longpole.mindspore.host_info_compat import (
    compatible_dataset,
    compatible_memory_and_timeline,
)
from longpole.mindspore.minddata_compat import (
    compatible_pipeline_raw,
    compatible_pipeline_summary,
)
from longpole.mindspore.output import write_new
from longpole.mindspore.step_trace import read_steps
from longpole.mindspore.step_trace_compat import compatible_point_info, compatible_step_trace
from longpole.mindspore.timeline_compat import compatible_timeline
from longpole.opening import read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from longpole.mindspore.layouts import RankFiles
    from longpole.mindspore.rank_analysis import Asked

__all__ = ["HINT", "write_compatible"]

HINT: Final = "without compat, the intact part of the files is read"
"""What to do if a damaged file ends MindSpore's code."""


def write_compatible(files: RankFiles, output: Path, asked: Asked, n_ranks: int) -> list[Path]:
    """Write the files of one rank; `n_ranks` is a part of the name of the cluster file."""
    contents = [
        *_host(files, developer_rows=asked.developer_rows),
        *_timeline(files, n_ranks, asked.limit_bytes),
        *_steps(files),
        *_pipeline(files),
    ]
    return [write_new(output / name, text) for name, text in contents]


_Content = tuple[str, "str | Iterable[bytes]"]
"""File name and contents."""


def _host(files: RankFiles, *, developer_rows: bool) -> Iterator[_Content]:
    host, rank = files.get("host_info"), files.rank
    if host is None:
        return
    memory, timeline = compatible_memory_and_timeline(host, developer_rows=developer_rows)
    if timeline is not None:
        yield f"host_info/timeline_{rank}.json", timeline
    if memory is not None:
        yield f"host_info/host_memory_{rank}.csv", memory
    dataset = compatible_dataset(host, developer_rows=developer_rows)
    yield f"host_info/dataset_{rank}.csv", dataset


def _timeline(files: RankFiles, n_ranks: int, limit_bytes: int | None) -> Iterator[_Content]:
    has_gpu = files.get("gpu_op_execute_timestamp") is not None
    if not (has_gpu or files.get("cpu_op_execute_timestamp")):
        return
    rank, target = files.rank, "gpu" if has_gpu else "cpu"
    made = compatible_timeline(files, limit_bytes)
    display = (text.encode() for text in made.display)
    yield f"{target}_timeline_display_{rank}.json", display
    yield f"{target}_timeline_summary_{rank}.json", made.summary
    if made.cluster is not None:
        # Offline, MindSpore assumes a data-parallel run with one stage.
        yield f"gpu_cluster_analyse_data-parallel_1_{n_ranks}_{rank}.csv", made.cluster


def _pipeline(files: RankFiles) -> Iterator[_Content]:
    if not files.get("pipeline_profiling"):
        return
    yield f"minddata_pipeline_raw_{files.rank}.csv", compatible_pipeline_raw(files)
    if files.get("minddata_cpu_utilization"):
        as_json, as_csv = compatible_pipeline_summary(files)
        yield f"minddata_pipeline_summary_{files.rank}.json", as_json
        yield f"minddata_pipeline_summary_{files.rank}.csv", as_csv


def _steps(files: RankFiles) -> Iterator[_Content]:
    path = files.get("step_trace_profiling")
    if path is None:
        return
    runs = files.get("gpu_op_execute_timestamp") or path
    lines = read_text(runs, is_named=False).splitlines()
    is_training = any(line.startswith("Gradients") for line in lines)
    findings = Findings()
    trace = read_steps(path, findings, as_mindspore=True)
    for found in findings.all():
        message = "MindSpore raises an exception here, or reads the damage as times"
        raise ProfileError(path, "mindspore_fails", f"{message}: {found.sentence}", hint=HINT)
    steps = compatible_step_trace(trace, is_training=is_training)
    yield f"step_trace_raw_{files.rank}_detail_time.csv", steps
    points = compatible_point_info(trace, is_training=is_training)
    yield f"step_trace_point_info_{files.rank}.json", points
