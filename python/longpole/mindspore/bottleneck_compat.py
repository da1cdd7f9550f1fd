"""MindSpore's sentences about the bottleneck of a data pipeline, word for word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.mindspore.bottleneck import Worker, rules, worded

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["compatible_bottleneck"]

_NONE: Final = -1
_PERCENT: Final = 100
_CPU: Final = {
    "few workers": (
        "{op.label} is using {op.use}% CPU per worker. Setting num_parallel_workers>{op.n_workers} "
        "might bring extra performance."
    ),
    "many workers": (
        "{op.label} is using {op.use}% CPU per worker. Using num_parallel_workers={op.n_workers} "
        "might not bring as much benefit due to low CPU usage per worker."
    ),
}
_QUEUES: Final = {
    "device waits": (
        "{op.label}'s input queue is empty {source.empty}% of the time. This might indicate "
        "dataset bottlenecks. Hence host cannot keep up with the device {source.empty}% of the "
        "time. Device waits whenever input queue is empty."
    ),
    "slow leaf": (
        "Leaf op {op.label} is using {op.full}% of its output queue.Setting "
        "num_parallel_workers>{op.n_workers} might speed up I/O."
    ),
    "slower": (
        "{op.label}'s input queue usage={source.full}% is greater output queue usage={op.full}%. "
        "This indicates child op {source.label} might be producing faster than its parent "
        "{op.label} can consume. If this op has low CPU utilization, try increasing prefetch_size "
        "or increasing num_workers."
    ),
}
_SUGGESTIONS: Final = {
    "busy": (
        "{op.label} has high CPU utilization per worker of {op.use}% Try increasing "
        "num_parallel_workers above {op.n_workers}."
    ),
    "waiting": (
        "{op.label} has low CPU utilization per worker of {op.use}% and abnormal queue usage. "
        "Try increasing prefetch_size."
    ),
}


def compatible_bottleneck(summary: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return MindSpore's additions to its summary; empty where its rules raise an IndexError."""
    numbers = summary["op_ids"]
    if numbers != list(range(len(numbers))):
        return {}
    found = list(rules({number: _worker(summary, number) for number in numbers}, _PERCENT))
    named = [each for each in found if each.rule in _SUGGESTIONS][:1]
    texts = {
        "cpu_analysis_details": worded(found, _CPU),
        "queue_analysis_details": worded(found, _QUEUES),
        "bottleneck_warning": tuple(each.op.label for each in named),
        "bottleneck_suggestion": worded(named, _SUGGESTIONS),
    }
    return {key: sentences for key, sentences in texts.items() if sentences}


def _worker(summary: Mapping[str, Any], number: int) -> Worker:
    full, empty = summary["queue_utilization_pct"][number], summary["queue_empty_freq_pct"][number]
    return Worker(
        summary["pipeline_ops"][number],
        summary["op_names"][number],
        summary["num_workers"][number],
        summary["children_ids"][number],
        summary["avg_cpu_pct_per_worker"][number],
        None if full == _NONE else full,
        None if empty == _NONE else empty,
    )
