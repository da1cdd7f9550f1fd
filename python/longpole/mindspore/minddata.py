"""How busy a data pipeline was: queues, workers, CPU use, times of batches, and its bottleneck.

The operators stand in `pipeline_profiling_{rank}.json`, their CPU use in
`minddata_cpu_utilization_{rank}.json`, and the batches in `device_queue_profiling_{rank}.txt` or
`dataset_iterator_profiling_{rank}.txt`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from longpole.mindspore.bottleneck import Bottleneck, find_bottleneck
from longpole.mindspore.errors import ProfileError
from longpole.mindspore.findings import FileFinding, Findings
from longpole.mindspore.text import json_of, lines_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from longpole.mindspore.layouts import RankFiles

__all__ = ["BatchTimes", "DataPipeline", "PipelineOp", "read_data_pipeline"]

_FIELDS: Final = 5
_SAMPLES: Final = 10
"""Fewer samples of the queues say nothing about which operator holds up the pipeline."""
_TIME, _SIZE = 0, 1
_HIGHEST: Final = 2**63


@dataclass(slots=True)
class PipelineOp:
    """An operator of the pipeline; None is not recorded, shares are of 1.

    `queue_share` is how full its output queue was on average, `empty_share` how often it was
    empty, `cpu_share` the CPU use of all its workers (1 is one core).
    """

    op_id: int
    name: str
    n_workers: int | None
    children: tuple[int, ...]
    parent: int | None = None
    queue_length: int | None = None
    queue_samples: tuple[int, ...] = ()
    queue_mean: float | None = None
    queue_share: float | None = None
    empty_share: float | None = None
    cpu_share: float | None = None

    @property
    def label(self) -> str:
        """Its name with its number, such as `Batch(id=2)`."""
        return f"{self.name}(id={self.op_id})"


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """Mean times of a batch in milliseconds, without the first; None is not recorded.

    `batch_ms` is from one batch to the next, `pipeline_ms` the wait for the pipeline, and
    `push_ms` the wait for the queue of the device.
    """

    n_batches: int
    batch_ms: float | None
    pipeline_ms: float | None
    push_ms: float | None


@dataclass(frozen=True, slots=True)
class DataPipeline:
    """The pipeline of one rank, by operator number; the root has 0.

    `bottleneck` is None where the CPU use is not known, or with fewer than 10 samples.
    """

    rank: int
    sampling_interval_ms: int | None
    operators: Sequence[PipelineOp]
    batches: BatchTimes | None
    bottleneck: Bottleneck | None
    findings: Sequence[FileFinding] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values."""
        return {
            "rank": self.rank,
            "sampling_interval_ms": self.sampling_interval_ms,
            "operators": [_plain(op) for op in self.operators],
            "batches": None if self.batches is None else asdict(self.batches),
            "bottleneck": None if self.bottleneck is None else asdict(self.bottleneck),
        }


def _plain(op: PipelineOp) -> dict[str, Any]:
    values = asdict(op)
    del values["queue_samples"]
    return values | {"children": list(op.children)}


def read_data_pipeline(files: RankFiles) -> DataPipeline:
    """Read the pipeline of one rank.

    Raises
    ------
    ProfileError
        The rank has no pipeline file, or it is damaged or not as MindSpore writes it.
    OSError
        A file cannot be read.
    """
    findings = Findings()
    path = files.need("pipeline_profiling")
    document = json_of(path, findings)
    operators = _operators(path, document)
    cpu = files.get("minddata_cpu_utilization")
    known = cpu is not None and _add_cpu(cpu, operators, findings)
    interval = document.get("sampling_interval")
    bottleneck = find_bottleneck(operators) if known else None
    n_samples = max(len(op.queue_samples) for op in operators.values())
    if bottleneck is not None and n_samples < _SAMPLES:
        findings.add("few_samples", path, None, f"{n_samples} samples")
        bottleneck = None
    return DataPipeline(
        files.rank,
        interval if isinstance(interval, int) else None,
        list(operators.values()),
        _batches(files, findings),
        bottleneck,
        findings.all(),
    )


def _operators(path: Path, document: Any) -> dict[int, PipelineOp]:
    rows = document.get("op_info") if isinstance(document, dict) else None
    if not isinstance(rows, list) or not rows:
        message = "the file has no operators (op_info)"
        raise ProfileError(
            path, "not_a_pipeline", message, hint="record again; the file is damaged"
        )
    found = {}
    for row in rows:
        op = _operator(row)
        if op is None:
            message = f"an operator is not as MindSpore writes it: {str(row)[:80]}"
            raise ProfileError(path, "not_a_pipeline", message)
        found[op.op_id] = op
    for op in found.values():
        for child in op.children:
            if child in found:
                found[child].parent = op.op_id
    return dict(sorted(found.items()))


def _operator(row: Any) -> PipelineOp | None:
    if not isinstance(row, dict):
        return None
    op_id: Any = row.get("op_id")
    kind: Any = row.get("op_type")
    workers: Any = row.get("num_workers")
    children: Any = row.get("children") or []
    is_sound = _is_whole(op_id) and isinstance(kind, str) and isinstance(children, list)
    if not is_sound or not all(map(_is_whole, children)):
        return None
    name = kind.removesuffix("Op")
    op = PipelineOp(op_id, name, workers if _is_whole(workers) else None, tuple(children))
    metrics = row.get("metrics")
    queue = metrics.get("output_queue") if isinstance(metrics, dict) else None
    if isinstance(queue, dict):
        _add_queue(op, queue.get("size"), queue.get("length"))
    return op


def _is_whole(value: Any) -> bool:
    return type(value) is int and -_HIGHEST <= value < _HIGHEST


def _is_percent(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < _HIGHEST


def _add_queue(op: PipelineOp, samples: Any, length: Any) -> None:
    if _is_whole(length) and length > 0:
        op.queue_length = length
    if isinstance(samples, list) and samples and all(map(_is_whole, samples)):
        op.queue_samples = tuple(samples)
        op.queue_mean = sum(samples) / len(samples)
        op.empty_share = samples.count(0) / len(samples)
        op.queue_share = op.queue_mean / length if op.queue_length else None


def _add_cpu(path: Path, operators: Mapping[int, PipelineOp], findings: Findings) -> bool:
    """Add the mean CPU use of each operator; tell whether it is known of all of them."""
    document = json_of(path, findings)
    rows = document.get("op_info") if isinstance(document, dict) else None
    for row in rows if isinstance(rows, list) else ():
        op_id: Any = row.get("op_id") if isinstance(row, dict) else None
        op = operators.get(op_id) if _is_whole(op_id) else None
        metrics = row.get("metrics") if op is not None else None
        if op is not None and isinstance(metrics, dict):
            op.cpu_share = _use(path, metrics, findings)
    if all(op.cpu_share is not None for op in operators.values()):
        return True
    findings.add("counts_differ", path)
    return False


def _use(path: Path, metrics: Mapping[str, Any], findings: Findings) -> float | None:
    """Add up the means of the use by the system and by the user, in percent of a core."""
    means = []
    lengths = set()
    for key in ("sys_utilization", "user_utilization"):
        samples = metrics.get(key)
        if not isinstance(samples, list) or not all(map(_is_percent, samples)):
            return None
        lengths.add(len(samples))
        means.append(sum(samples) / len(samples) if samples else 0.0)
    if len(lengths) > 1:
        findings.add("lengths_differ", path)
    return sum(means) / 100 if lengths != {0} else None


def _batches(files: RankFiles, findings: Findings) -> BatchTimes | None:
    """Read `type extra batch value stamp` lines; the first batch warms up and is left out."""
    path = files.get("device_queue_profiling") or files.get("dataset_iterator_profiling")
    if path is None:
        return None
    times: tuple[list[int], list[int], list[int]] = ([], [], [])
    between: list[int] = []
    before: int | None = None
    for line, text in lines_of(path, findings):
        record = _record(text)
        if record is None:
            findings.add("bad_row", path, line)
            continue
        kind, extra, batch, value, stamp_ms = record
        if kind == _TIME and batch > 1 and extra in (0, 1, 2):
            times[extra].append(value)
        elif kind == _SIZE:
            if before is not None and batch > 1:
                between.append(stamp_ms - before)
            before = stamp_ms
    is_queue = path.name.startswith("device_queue")
    # The iterator writes how long it waited for a batch as its batch time, not the whole period.
    pipeline, push, batch_times = times
    periods = batch_times if is_queue else between
    return BatchTimes(max(map(len, (*times, between))), *map(_mean, (periods, pipeline, push)))


def _record(text: str) -> tuple[int, int, int, int, int] | None:
    try:
        kind, extra, batch, value, stamp_ms = (int(word) for word in text.split()[:_FIELDS])
    except ValueError:
        return None
    is_sound = 0 <= value < _HIGHEST and 0 <= stamp_ms < _HIGHEST
    return (kind, extra, batch, value, stamp_ms) if is_sound else None


def _mean(values: Sequence[int]) -> float | None:
    return sum(values) / len(values) if values else None
