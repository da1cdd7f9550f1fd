"""The load of a data pipeline: queues, workers, CPU use, batch times, and its bottleneck.

The operators are in `pipeline_profiling_{rank}.json`, their CPU use in
`minddata_cpu_utilization_{rank}.json`, and the batches in `device_queue_profiling_{rank}.txt` or
`dataset_iterator_profiling_{rank}.txt`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from longpole.formats.mindspore.bottleneck import Bottleneck, Worker, find_bottleneck
from longpole.formats.mindspore.findings import ProfileError
from longpole.formats.mindspore.text import TextFile, json_of
from longpole.words.data import Data

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from longpole.formats.mindspore.findings import Findings
    from longpole.formats.mindspore.layouts import RankFiles

_FIELDS: Final = 5
_SAMPLES: Final = 10
"""With fewer samples of the queues, no operator is reported as the bottleneck."""
_TIME, _SIZE = 0, 1
_HIGHEST: Final = 2**63


@dataclass(frozen=True, slots=True)
class PipelineOp:
    """An operator of the pipeline. None if not recorded; shares are fractions."""

    op_id: int
    name: str
    n_workers: int | None
    children: tuple[int, ...]
    parent: int | None
    queue_length: int | None
    queue_mean: float | None
    queue_share: float | None
    """Mean fill level of its output queue."""
    empty_share: float | None
    """Fraction of samples in which its output queue was empty."""
    cpu_share: float | None
    """CPU use of all its workers; 1 is one core."""

    @property
    def label(self) -> str:
        """Its name with its number, such as `Batch(id=2)`."""
        return f"{self.name}(id={self.op_id})"


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """Mean times of a batch in milliseconds, without the first; None if not recorded."""

    n_batches: int
    batch_ms: float | None
    """Time from one batch to the next."""
    pipeline_ms: float | None
    """Wait for the pipeline."""
    push_ms: float | None
    """Wait for the queue of the device."""


@dataclass(frozen=True, slots=True)
class DataPipeline(Data):
    """The pipeline of one rank."""

    rank: int
    sampling_interval_ms: int | None
    operators: Sequence[PipelineOp]
    """Operators by number; the root has 0."""
    batches: BatchTimes | None
    bottleneck: Bottleneck | None
    """The bottleneck; None without CPU use, or with fewer than 10 samples."""


def read_data_pipeline(files: RankFiles, findings: Findings) -> DataPipeline:
    """Read the pipeline of one rank.

    Raises
    ------
    ProfileError
        The rank has no pipeline file, or it is damaged or has another format.
    """
    path = files.need("pipeline_profiling")
    document = json_of(path, findings)
    rows = _rows(path, document)
    use = _cpu_use(files.get("minddata_cpu_utilization"), rows, findings)
    parents = {child: number for number, row in rows.items() for child in _children(row)}
    operators = {
        number: _operator(rows[number], parents.get(number), use.get(number))
        for number in sorted(rows)
    }
    interval = document.get("sampling_interval")
    bottleneck = None
    if None not in {op.cpu_share for op in operators.values()}:
        bottleneck = find_bottleneck({number: _worker(op) for number, op in operators.items()})
        n_samples = max(len(_queue(row)[1]) for row in rows.values())
        if n_samples < _SAMPLES:
            findings.add("few_samples", path, None, f"{n_samples} samples")
            bottleneck = None
    return DataPipeline(
        files.rank,
        interval if isinstance(interval, int) else None,
        list(operators.values()),
        _batches(files, findings),
        bottleneck,
    )


def _rows(path: Path, document: Any) -> dict[int, dict[str, Any]]:
    """Return the operators in the file by number."""
    rows = document.get("op_info") if isinstance(document, dict) else None
    if not isinstance(rows, list) or not rows:
        message = "the file has no operators (op_info)"
        raise ProfileError(
            path, "not_a_pipeline", message, hint="record again; the file is damaged"
        )
    for row in rows:
        if not _is_operator(row):
            message = f"an operator is not as MindSpore writes it: {str(row)[:80]}"
            raise ProfileError(path, "not_a_pipeline", message)
    return {row["op_id"]: row for row in rows}


def _is_operator(row: Any) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("op_type"), str):
        return False
    children = _children(row)
    return isinstance(children, list) and all(map(_is_whole, (row.get("op_id"), *children)))


def _children(row: Mapping[str, Any]) -> Any:
    return row.get("children") or []


def _queue(row: Mapping[str, Any]) -> tuple[int | None, Sequence[int]]:
    """Return the length of its output queue, and its fill level at each sample."""
    metrics = row.get("metrics")
    queue = metrics.get("output_queue") if isinstance(metrics, dict) else None
    known: dict[str, Any] = queue if isinstance(queue, dict) else {}
    length, samples = known.get("length"), known.get("size")
    is_sampled = isinstance(samples, list) and all(map(_is_whole, samples))
    is_known = _is_whole(length) and length > 0
    return length if is_known else None, samples or () if is_sampled else ()


def _is_whole(value: Any) -> TypeGuard[int]:
    return type(value) is int and -_HIGHEST <= value < _HIGHEST


def _is_percent(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < _HIGHEST


def _operator(row: Mapping[str, Any], parent: int | None, cpu_share: float | None) -> PipelineOp:
    workers, (length, samples) = row.get("num_workers"), _queue(row)
    mean = sum(samples) / len(samples) if samples else None
    return PipelineOp(
        op_id=row["op_id"],
        name=row["op_type"].removesuffix("Op"),
        n_workers=workers if _is_whole(workers) else None,
        children=tuple(_children(row)),
        parent=parent,
        queue_length=length,
        queue_mean=mean,
        queue_share=mean / length if mean is not None and length else None,
        empty_share=samples.count(0) / len(samples) if samples else None,
        cpu_share=cpu_share,
    )


def _worker(op: PipelineOp) -> Worker:
    use = op.cpu_share / op.n_workers if op.n_workers and op.cpu_share is not None else None
    shares = (use, op.queue_share, op.empty_share)
    return Worker(op.label, op.name, op.n_workers or 0, op.children, *shares)


def _cpu_use(
    path: Path | None, operators: Collection[int], findings: Findings
) -> dict[int, float | None]:
    """Return the mean CPU use of each operator, if known."""
    if path is None:
        return {}
    document = json_of(path, findings)
    rows = document.get("op_info") if isinstance(document, dict) else None
    found: dict[int, float | None] = {}
    for row in rows if isinstance(rows, list) else ():
        op_id, metrics = map(row.get, ("op_id", "metrics")) if isinstance(row, dict) else (0, 0)
        if _is_whole(op_id) and op_id in operators and isinstance(metrics, dict):
            found[op_id] = _use(path, metrics, findings)
    if any(found.get(number) is None for number in operators):
        findings.add("counts_differ", path)
    return found


def _use(path: Path, metrics: Mapping[str, Any], findings: Findings) -> float | None:
    """Sum the means of system and user time, in percent of a core."""
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
    """Read `type extra batch value stamp` lines; the first batch is a warm-up and left out."""
    path = files.get("device_queue_profiling") or files.get("dataset_iterator_profiling")
    if path is None:
        return None
    times: tuple[list[int], list[int], list[int]] = ([], [], [])
    between: list[int] = []
    before: int | None = None
    file = TextFile(path, findings)
    for text in file.lines():
        record = _record(text)
        if record is None:
            file.report("bad_row")
            continue
        kind, extra, batch, value, stamp_ms = record
        if kind == _TIME and batch > 1 and extra in (0, 1, 2):
            times[extra].append(value)
        elif kind == _SIZE:
            if before is not None and batch > 1:
                between.append(stamp_ms - before)
            before = stamp_ms
    is_queue = path.name.startswith("device_queue")
    # The iterator's batch time is its wait for a batch, not the whole period.
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
