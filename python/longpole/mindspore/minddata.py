"""How busy a data pipeline was: queues, workers, CPU use, times of batches, and its bottleneck.

The operators stand in `pipeline_profiling_{rank}.json`, their CPU use in
`minddata_cpu_utilization_{rank}.json`, and the batches in `device_queue_profiling_{rank}.txt` or
`dataset_iterator_profiling_{rank}.txt`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard

from longpole.data import Data
from longpole.mindspore.bottleneck import Bottleneck, Worker, find_bottleneck
from longpole.mindspore.errors import ProfileError
from longpole.mindspore.text import TextFile, json_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from longpole.mindspore.findings import Findings
    from longpole.mindspore.layouts import RankFiles

__all__ = ["BatchTimes", "DataPipeline", "PipelineOp", "read_data_pipeline"]

_FIELDS: Final = 5
_SAMPLES: Final = 10
"""Fewer samples of the queues say nothing about which operator holds up the pipeline."""
_TIME, _SIZE = 0, 1
_HIGHEST: Final = 2**63


@dataclass(frozen=True, slots=True)
class PipelineOp:
    """An operator of the pipeline; None is not recorded, shares are of 1.

    `queue_share` is how full its output queue was on average, `empty_share` how often it was
    empty, `cpu_share` the CPU use of all its workers (1 is one core).
    """

    op_id: int
    name: str
    n_workers: int | None
    children: tuple[int, ...]
    parent: int | None
    queue_length: int | None
    queue_mean: float | None
    queue_share: float | None
    empty_share: float | None
    cpu_share: float | None

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
class DataPipeline(Data):
    """The pipeline of one rank, by operator number; the root has 0.

    `bottleneck` is None where the CPU use is not known, or with fewer than 10 samples.
    """

    rank: int
    sampling_interval_ms: int | None
    operators: Sequence[PipelineOp]
    batches: BatchTimes | None
    bottleneck: Bottleneck | None


def read_data_pipeline(files: RankFiles, findings: Findings) -> DataPipeline:
    """Read the pipeline of one rank.

    Raises
    ------
    ProfileError
        The rank has no pipeline file, or it is damaged or not as MindSpore writes it.
    """
    path = files.need("pipeline_profiling")
    document = json_of(path, findings)
    nodes = _nodes(path, document)
    use = _cpu_use(files.get("minddata_cpu_utilization"), nodes, findings)
    parents = {child: number for number, node in nodes.items() for child in node.children}
    operators = {number: _operator(nodes[number], parents, use) for number in sorted(nodes)}
    interval = document.get("sampling_interval")
    bottleneck = None
    if None not in {op.cpu_share for op in operators.values()}:
        bottleneck = find_bottleneck({number: _worker(op) for number, op in operators.items()})
        n_samples = max(len(node.samples) for node in nodes.values())
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


class _Node(NamedTuple):
    """An operator as the file has it, without what is no number there."""

    op_id: int
    name: str
    n_workers: int | None
    children: tuple[int, ...]
    queue_length: int | None
    samples: tuple[int, ...]


def _nodes(path: Path, document: Any) -> dict[int, _Node]:
    rows = document.get("op_info") if isinstance(document, dict) else None
    if not isinstance(rows, list) or not rows:
        message = "the file has no operators (op_info)"
        raise ProfileError(
            path, "not_a_pipeline", message, hint="record again; the file is damaged"
        )
    found = {}
    for row in rows:
        node = _node(row)
        if node is None:
            message = f"an operator is not as MindSpore writes it: {str(row)[:80]}"
            raise ProfileError(path, "not_a_pipeline", message)
        found[node.op_id] = node
    return found


def _node(row: Any) -> _Node | None:
    if not isinstance(row, dict):
        return None
    op_id: Any = row.get("op_id")
    kind: Any = row.get("op_type")
    workers: Any = row.get("num_workers")
    children: Any = row.get("children") or []
    is_sound = _is_whole(op_id) and isinstance(kind, str) and isinstance(children, list)
    if not is_sound or not all(map(_is_whole, children)):
        return None
    metrics = row.get("metrics")
    queue = metrics.get("output_queue") if isinstance(metrics, dict) else None
    known: dict[str, Any] = queue if isinstance(queue, dict) else {}
    length, samples = known.get("length"), known.get("size")
    is_sampled = isinstance(samples, list) and all(map(_is_whole, samples))
    return _Node(
        op_id,
        kind.removesuffix("Op"),
        workers if _is_whole(workers) else None,
        tuple(children),
        length if _is_whole(length) and length > 0 else None,
        tuple(samples or ()) if is_sampled else (),
    )


def _is_whole(value: Any) -> TypeGuard[int]:
    return type(value) is int and -_HIGHEST <= value < _HIGHEST


def _is_percent(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < _HIGHEST


def _operator(
    node: _Node, parents: Mapping[int, int], use: Mapping[int, float | None]
) -> PipelineOp:
    samples, length = node.samples, node.queue_length
    mean = sum(samples) / len(samples) if samples else None
    return PipelineOp(
        *node[:4],
        parents.get(node.op_id),
        length,
        mean,
        mean / length if mean is not None and length else None,
        samples.count(0) / len(samples) if samples else None,
        use.get(node.op_id),
    )


def _worker(op: PipelineOp) -> Worker:
    use = op.cpu_share / op.n_workers if op.n_workers and op.cpu_share is not None else None
    shares = (use, op.queue_share, op.empty_share)
    return Worker(op.label, op.name, op.n_workers or 0, op.children, *shares)


def _cpu_use(
    path: Path | None, nodes: Mapping[int, _Node], findings: Findings
) -> dict[int, float | None]:
    """Give the mean CPU use of each operator, as far as it is known."""
    if path is None:
        return {}
    document = json_of(path, findings)
    rows = document.get("op_info") if isinstance(document, dict) else None
    found: dict[int, float | None] = {}
    for row in rows if isinstance(rows, list) else ():
        op_id, metrics = map(row.get, ("op_id", "metrics")) if isinstance(row, dict) else (0, 0)
        if _is_whole(op_id) and op_id in nodes and isinstance(metrics, dict):
            found[op_id] = _use(path, metrics, findings)
    if any(found.get(number) is None for number in nodes):
        findings.add("counts_differ", path)
    return found


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
