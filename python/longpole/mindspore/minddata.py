"""The load of a data pipeline: queues, workers, CPU use, batch times, and its bottleneck.

The operators are in `pipeline_profiling_{rank}.json`, their CPU use in
`minddata_cpu_utilization_{rank}.json`, and the batches in `device_queue_profiling_{rank}.txt` or
`dataset_iterator_profiling_{rank}.txt`.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from longpole.data import Data
from longpole.mindspore.bottleneck import Bottleneck, Worker, compatible_bottleneck, find_bottleneck
from longpole.mindspore.findings import ProfileError
from longpole.mindspore.output import csv_text
from longpole.mindspore.text import TextFile, json_of
from longpole.opening import read_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from longpole.mindspore.findings import Findings
    from longpole.mindspore.layouts import RankFiles

__all__ = [
    "BatchTimes",
    "DataPipeline",
    "PipelineOp",
    "compatible_pipeline_raw",
    "compatible_pipeline_summary",
    "read_data_pipeline",
]


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


# MindSpore's files about a data pipeline, byte for byte.


_RAW: Final = (
    "op_id",
    "op_type",
    "num_workers",
    "output_queue_size",
    "output_queue_average_size",
    "output_queue_length",
    "output_queue_usage_rate",
    "sample_interval",
    "parent_id",
    "children_id",
)
_NONE: Final = -1


def compatible_pipeline_raw(files: RankFiles) -> str:
    """Return the text of `minddata_pipeline_raw_{rank}.csv`."""
    document = _json(files, "pipeline_profiling")
    nodes = {node["op_id"]: dict(node, parent_id=None) for node in document["op_info"]}
    rows: list[Sequence[Any]] = [_RAW]
    waiting = deque([nodes[0]])
    while waiting:
        node = waiting.popleft()
        _check_circle(len(rows), nodes)
        node["children"] = _with_queues(node.get("children"), nodes)
        rows.append(_raw_row(node, document["sampling_interval"]))
        for child in node["children"] or ():
            nodes[child]["parent_id"] = node["op_id"]
            waiting.append(nodes[child])
    return csv_text(rows)


def _json(files: RankFiles, kind: str) -> Any:
    return json.loads(read_text(files.need(kind), is_named=False))


def _compatible_queue(node: Mapping[str, Any]) -> Any:
    return (node.get("metrics") or {}).get("output_queue")


def _with_queues(
    children: Sequence[int] | None, nodes: Mapping[int, Mapping[str, Any]]
) -> list[int] | None:
    """Replace children without a queue by their own children, breadth first."""
    if not children:
        return None
    found, waiting, seen = [], deque(children), 0
    while waiting:
        seen += 1
        _check_circle(seen, nodes)
        child = nodes.get(waiting.popleft())
        if child is None:
            continue
        if _compatible_queue(child):
            found.append(child["op_id"])
        else:
            waiting += child.get("children") or ()
    return found or None


def _check_circle(seen: int, nodes: Mapping[int, object]) -> None:
    """Raise for a cycle, on which MindSpore would not end: a tree has each operator once."""
    if seen > len(nodes):
        message = "the operators of the pipeline do not form a tree"
        raise ValueError(message)


def _raw_row(node: Mapping[str, Any], interval: int) -> list[Any]:
    queue = _compatible_queue(node) or {}
    sizes, length = queue.get("size"), queue.get("length")
    mean = sum(sizes) / len(sizes) if sizes else None
    rate = mean / length if mean is not None else None
    start = [node["op_id"], node["op_type"], node["num_workers"]]
    return [*start, sizes, mean, length, rate, interval, node["parent_id"], node["children"]]


def compatible_pipeline_summary(files: RankFiles) -> tuple[str, str]:
    """Return the text of `minddata_pipeline_summary_{rank}`, as JSON and as CSV."""
    summary = _pipeline(_json(files, "pipeline_profiling"))
    use = _compatible_cpu_use(_json(files, "minddata_cpu_utilization"))
    summary |= {"avg_cpu_pct": use, **_batch_times(files)}
    if len(use) == len(summary["op_ids"]):
        workers = zip(use, summary["num_workers"], strict=False)
        per_worker = [
            round(cpu / number if number and cpu >= 0 else _NONE, 2) for cpu, number in workers
        ]
        summary["avg_cpu_pct_per_worker"] = per_worker
        summary |= compatible_bottleneck(summary)
    return json.dumps(summary), csv_text([key, *values] for key, values in summary.items())


def _pipeline(document: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    nodes = sorted(document["op_info"], key=lambda node: node["op_id"])
    parents = {}
    for node in reversed(document["op_info"]):
        parents.update(dict.fromkeys(node.get("children") or (), node["op_id"]))
    queues = [_queue_use(_compatible_queue(node)) for node in nodes]
    names = [node["op_type"][:-2] for node in nodes]
    ids = [node["op_id"] for node in nodes]
    return {
        "pipeline_ops": [f"{name}(id={op})" for name, op in zip(names, ids, strict=True)],
        "op_names": names,
        "op_ids": ids,
        "num_workers": [node["num_workers"] for node in nodes],
        "queue_average_size": [use[0] for use in queues],
        "queue_utilization_pct": [use[1] for use in queues],
        "queue_empty_freq_pct": [use[2] for use in queues],
        "children_ids": [node.get("children") or [] for node in nodes],
        "parent_id": [parents.get(op, _NONE) for op in ids],
    }


def _queue_use(queue: Any) -> tuple[float, float, float]:
    if not queue:
        return _NONE, _NONE, _NONE
    sizes, length = queue["size"], queue["length"]
    mean = round(sum(sizes) / len(sizes), 2) if sizes else _NONE
    share = round(100 * mean / length, 2) if length else _NONE
    return mean, share, round(100 * sizes.count(0) / len(sizes), 2) if sizes else _NONE


def _compatible_cpu_use(document: Mapping[str, Any]) -> list[float]:
    samples = {}
    for op in document["op_info"]:
        if op["op_id"] != _NONE:
            system, user = op["metrics"]["sys_utilization"], op["metrics"]["user_utilization"]
            samples[op["op_id"]] = [system[at] + user[at] for at in range(len(system))]
    use: list[float] = [_NONE] * len(samples)
    for op_id, values in samples.items():
        use[op_id] = round(sum(values) / len(values) if values else 0, 2)
    return use


def _batch_times(files: RankFiles) -> dict[str, list[float]]:
    queue = files.get("device_queue_profiling")
    path = queue or files.need("dataset_iterator_profiling")
    times: tuple[list[int], list[int], list[int]] = ([], [], [])
    before = 0
    for line in read_text(path, is_named=False).splitlines():
        kind, extra, batch, value, stamp_ms = (int(word) for word in line.split(" ")[:5])
        if batch < 2:  # noqa: PLR2004 (the first batch is left out)
            before = stamp_ms
        elif kind == 0:
            times[extra].append(value)
        elif kind == 1 and queue is None:
            times[2].append(stamp_ms - before)
            before = stamp_ms
    pipeline, push, batches = (round(sum(each) / len(each) if each else _NONE, 3) for each in times)
    return {
        "per_batch_time": [batches],
        "per_pipeline_time": [pipeline],
        "per_push_queue_time": [push],
    }
