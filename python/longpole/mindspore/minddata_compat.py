"""MindSpore's files about a data pipeline, byte for byte.

`minddata_pipeline_raw_{rank}.csv`, and `minddata_pipeline_summary_{rank}` as JSON and CSV.
"""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from longpole.mindspore.bottleneck_compat import compatible_bottleneck
from longpole.mindspore.output import csv_text
from longpole.opening import read_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from longpole.mindspore.layouts import RankFiles

__all__ = ["compatible_pipeline_raw", "compatible_pipeline_summary"]

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


def _queue(node: Mapping[str, Any]) -> Any:
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
        if _queue(child):
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
    queue = _queue(node) or {}
    sizes, length = queue.get("size"), queue.get("length")
    mean = sum(sizes) / len(sizes) if sizes else None
    rate = mean / length if mean is not None else None
    start = [node["op_id"], node["op_type"], node["num_workers"]]
    return [*start, sizes, mean, length, rate, interval, node["parent_id"], node["children"]]


def compatible_pipeline_summary(files: RankFiles) -> tuple[str, str]:
    """Return the text of `minddata_pipeline_summary_{rank}`, as JSON and as CSV."""
    summary = _pipeline(_json(files, "pipeline_profiling"))
    use = _cpu_use(_json(files, "minddata_cpu_utilization"))
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
    queues = [_queue_use(_queue(node)) for node in nodes]
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


def _cpu_use(document: Mapping[str, Any]) -> list[float]:
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
