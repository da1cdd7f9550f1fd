"""Finds the operator that limits a data pipeline, by MindSpore's rules on CPU use and queues.

The thresholds are MindSpore's. Operators that only pass on rows (Zip, Repeat, ...) have no queue or
workers of their own and are skipped. The results are worded here, and in MindSpore's own words in
`bottleneck_compat`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = [
    "Bottleneck",
    "Found",
    "Worker",
    "compatible_bottleneck",
    "find_bottleneck",
    "rules",
    "worded",
]


_PASSING: Final = frozenset(
    ("Barrier", "Concat", "EpochCtrl", "Rename", "Repeat", "Shuffle", "Skip", "Take", "Zip")
)
_BUSY, _IDLE = 0.75, 0.20
_LEAF_FULL: Final = 0.50
_EMPTY: Final = 0.60
_APART: Final = 0.50
_INPUT_FULL: Final = 0.10

_SUGGESTIONS: Final = {
    "busy": ("its workers use {op.use:.0%} of a core each: try more than {op.n_workers} workers"),
    "waiting": ("its workers use {op.use:.0%} of a core each and wait: try a larger prefetch_size"),
}
_CPU: Final = {
    "few workers": (
        "{op.label}: {op.use:.0%} of a core per worker; more than {op.n_workers} may help"
    ),
    "many workers": (
        "{op.label}: {op.use:.0%} of a core per worker; {op.n_workers} workers may be too many"
    ),
}
_QUEUES: Final = {
    "device waits": (
        "{op.label}: its input queue is empty {source.empty:.0%} of the time, the device waits then"
    ),
    "slow leaf": "{op.label}: its output queue is {op.full:.0%} full; more workers may help",
    "slower": (
        "{op.label}: its input queue is {source.full:.0%} full and its output queue "
        "{op.full:.0%}: it is slower than {source.label}"
    ),
}


class Worker(NamedTuple):
    """The data of an operator used by the rules; None if unknown.

    `use` is the CPU use of each of its workers, in cores; `full` and `empty` describe its output
    queue.
    """

    label: str
    name: str
    n_workers: int
    children: Sequence[int]
    use: float | None
    full: float | None
    empty: float | None


class Found(NamedTuple):
    """The result of a rule for an operator, and for the operator whose queue it reads from."""

    rule: str
    op: Worker
    source: Worker | None


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The results of the rules."""

    operator: str | None
    """The operator that is the bottleneck; None if the rules find none."""
    suggestion: str | None
    cpu: tuple[str, ...]
    """Results on the CPU use."""
    queues: tuple[str, ...]
    """Results on the queues."""


def find_bottleneck(workers: Mapping[int, Worker]) -> Bottleneck:
    """Apply the rules; the CPU use of every operator must be known.

    If several operators are found, the one nearest to the root is the bottleneck.
    """
    found = list(rules(workers))
    first = [each for each in found if each.rule in _SUGGESTIONS][:1]
    operator = first[0].op.label if first else None
    suggestion = next(iter(worded(first, _SUGGESTIONS)), None)
    return Bottleneck(operator, suggestion, worded(found, _CPU), worded(found, _QUEUES))


def worded(found: Iterable[Found], sentences: Mapping[str, str]) -> tuple[str, ...]:
    """Return the results as sentences; those without a sentence are left out."""
    return tuple(
        sentences[each.rule].format(op=each.op, source=each.source)
        for each in found
        if each.rule in sentences
    )


def rules(workers: Mapping[int, Worker], whole: int = 1) -> Iterator[Found]:
    """Apply the rules to each active operator; shares are relative to `whole`."""
    for number, op in workers.items():
        if op.name not in _PASSING:
            source = _source(number, workers)
            for rule in (_suggestion, _cpu, _queue):
                name = rule(op, source, whole)
                if name is not None:
                    yield Found(name, op, source)


def _source(number: int, workers: Mapping[int, Worker]) -> Worker | None:
    """Return the operator whose queue it reads from, skipping those without one."""
    seen = {number}
    children = workers[number].children
    while children:
        number = children[0]
        child = workers.get(number)
        if child is None or number in seen:
            return None
        if child.empty is not None:
            return child
        seen.add(number)
        children = child.children
    return None


def _suggestion(op: Worker, source: Worker | None, whole: int) -> str | None:
    if op.use is None or op.name == "DeviceQueue":
        return None
    if op.use > _BUSY * whole:
        return "busy"
    if op.use >= _IDLE * whole or source is None or source.full is None:
        return None
    is_behind = op.full is not None and op.full - source.full > _APART * whole
    return "waiting" if source.full < _INPUT_FULL * whole or is_behind else None


def _cpu(op: Worker, _: Worker | None, whole: int) -> str | None:
    if op.use is None:
        return None
    if op.use > _BUSY * whole:
        return "few workers"
    return "many workers" if op.use < _IDLE * whole and op.n_workers > 1 else None


def _queue(op: Worker, source: Worker | None, whole: int) -> str | None:
    if op.name == "Batch":
        return None
    if op.name == "DeviceQueue" and source is not None:
        is_empty = source.empty is not None and source.empty > _EMPTY * whole
        return "device waits" if is_empty else None
    if op.full is None:
        return None
    if source is None:
        return "slow leaf" if op.full < _LEAF_FULL * whole else None
    is_slower = source.full is not None and source.full - op.full > _APART * whole
    return "slower" if is_slower else None


# MindSpore's sentences about the bottleneck of a data pipeline, word for word.


_NONE: Final = -1
_PERCENT: Final = 100
_COMPATIBLE_CPU: Final = {
    "few workers": (
        "{op.label} is using {op.use}% CPU per worker. Setting num_parallel_workers>{op.n_workers} "
        "might bring extra performance."
    ),
    "many workers": (
        "{op.label} is using {op.use}% CPU per worker. Using num_parallel_workers={op.n_workers} "
        "might not bring as much benefit due to low CPU usage per worker."
    ),
}
_COMPATIBLE_QUEUES: Final = {
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
_COMPATIBLE_SUGGESTIONS: Final = {
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
    """Return MindSpore's additions to its summary; empty if its rules raise an IndexError."""
    numbers = summary["op_ids"]
    if numbers != list(range(len(numbers))):
        return {}
    found = list(rules({number: _worker(summary, number) for number in numbers}, _PERCENT))
    named = [each for each in found if each.rule in _COMPATIBLE_SUGGESTIONS][:1]
    texts = {
        "cpu_analysis_details": worded(found, _COMPATIBLE_CPU),
        "queue_analysis_details": worded(found, _COMPATIBLE_QUEUES),
        "bottleneck_warning": tuple(each.op.label for each in named),
        "bottleneck_suggestion": worded(named, _COMPATIBLE_SUGGESTIONS),
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
