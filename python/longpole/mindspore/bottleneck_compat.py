"""MindSpore's sentences about the bottleneck of a data pipeline, word for word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.mindspore.bottleneck import PASSING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["compatible_bottleneck"]

_NONE: Final = -1
_BUSY, _IDLE = 75.0, 20.0
_LEAF_FULL, _EMPTY, _APART, _INPUT_FULL = 50, 60, 50, 10


def compatible_bottleneck(summary: Mapping[str, Any]) -> dict[str, list[str]]:
    """Give what MindSpore adds to its summary; nothing where its rules end in an IndexError."""
    try:
        return _analysed(summary)
    except IndexError:
        return {}


def _analysed(summary: Mapping[str, Any]) -> dict[str, list[str]]:
    at_work = [op for op in summary["op_ids"] if summary["op_names"][op] not in PASSING]
    found = {
        "cpu_analysis_details": [text for op in at_work if (text := _cpu(summary, op))],
        "queue_analysis_details": [text for op in at_work if (text := _queue(summary, op))],
    }
    for op in at_work:
        suggestion = _suggestion(summary, op)
        if suggestion:
            found["bottleneck_warning"] = [summary["pipeline_ops"][op]]
            found["bottleneck_suggestion"] = [suggestion]
            break
    return {key: texts for key, texts in found.items() if texts}


def _input(summary: Mapping[str, Any], op: int) -> int:
    children = summary["children_ids"][op]
    if op == _NONE or not children:
        return _NONE
    child: int = children[0]
    return child if summary["queue_average_size"][child] != _NONE else _input(summary, child)


def _cpu(summary: Mapping[str, Any], op: int) -> str | None:
    label, workers = summary["pipeline_ops"][op], summary["num_workers"][op]
    use = summary["avg_cpu_pct_per_worker"][op]
    start = f"{label} is using {use}% CPU per worker."
    if use > _BUSY and summary["op_names"][op]:
        return f"{start} Setting num_parallel_workers>{workers} might bring extra performance."
    if use < _IDLE and workers > 1:
        return (
            f"{start} Using num_parallel_workers={workers} might not bring as much benefit"
            " due to low CPU usage per worker."
        )
    return None


def _queue(summary: Mapping[str, Any], op: int) -> str | None:
    name, label = summary["op_names"][op], summary["pipeline_ops"][op]
    if name == "Batch":
        return None
    source, full = _input(summary, op), summary["queue_utilization_pct"][op]
    if source == _NONE and full != _NONE:
        workers = summary["num_workers"][op]
        return (
            f"Leaf op {label} is using {full}% of its output queue."
            f"Setting num_parallel_workers>{workers} might speed up I/O."
            if full < _LEAF_FULL
            else None
        )
    if name == "DeviceQueue" and source != _NONE:
        return _device_queue(label, summary["queue_empty_freq_pct"][source])
    if _NONE not in (source, full):
        return _slower(summary, label, source, full)
    return None


def _device_queue(label: str, empty: float) -> str | None:
    if empty <= _EMPTY:
        return None
    return (
        f"{label}'s input queue is empty {empty}% of the time. This might indicate dataset "
        f"bottlenecks. Hence host cannot keep up with the device {empty}% of the time. "
        "Device waits whenever input queue is empty."
    )


def _slower(summary: Mapping[str, Any], label: str, source: int, full: float) -> str | None:
    before = summary["queue_utilization_pct"][source]
    if before == _NONE or before - full <= _APART:
        return None
    child = summary["pipeline_ops"][source]
    return (
        f"{label}'s input queue usage={before}% is greater output queue usage={full}%. This "
        f"indicates child op {child} might be producing faster than its parent {label} can "
        "consume. If this op has low CPU utilization, try increasing prefetch_size or increasing "
        "num_workers."
    )


def _suggestion(summary: Mapping[str, Any], op: int) -> str | None:
    if summary["op_names"][op] == "DeviceQueue":
        return None
    label, use = summary["pipeline_ops"][op], summary["avg_cpu_pct_per_worker"][op]
    if use > _BUSY:
        workers = summary["num_workers"][op]
        return (
            f"{label} has high CPU utilization per worker of {use}% "
            f"Try increasing num_parallel_workers above {workers}."
        )
    source = _input(summary, op)
    if use >= _IDLE or source == _NONE:
        return None
    before, full = summary["queue_utilization_pct"][source], summary["queue_utilization_pct"][op]
    if before < _INPUT_FULL or full - before > _APART:
        return (
            f"{label} has low CPU utilization per worker of {use}% "
            "and abnormal queue usage. Try increasing prefetch_size."
        )
    return None
