"""Finds the operator that limits a data pipeline, by MindSpore's rules on CPU use and queues.

The thresholds are MindSpore's. Operators that only pass on rows (Zip, Repeat, ...) have no queue or
workers of their own and are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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


def rules(workers: Mapping[int, Worker]) -> Iterator[Found]:
    """Apply the rules to each active operator."""
    for number, op in workers.items():
        if op.name not in _PASSING:
            source = _source(number, workers)
            for rule in (_suggestion, _cpu, _queue):
                name = rule(op, source)
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


def _suggestion(op: Worker, source: Worker | None) -> str | None:
    if op.use is None or op.name == "DeviceQueue":
        return None
    if op.use > _BUSY:
        return "busy"
    if op.use >= _IDLE or source is None or source.full is None:
        return None
    is_behind = op.full is not None and op.full - source.full > _APART
    return "waiting" if source.full < _INPUT_FULL or is_behind else None


def _cpu(op: Worker, _: Worker | None) -> str | None:
    if op.use is None:
        return None
    if op.use > _BUSY:
        return "few workers"
    return "many workers" if op.use < _IDLE and op.n_workers > 1 else None


def _queue(op: Worker, source: Worker | None) -> str | None:
    if op.name == "Batch":
        return None
    if op.name == "DeviceQueue" and source is not None:
        is_empty = source.empty is not None and source.empty > _EMPTY
        return "device waits" if is_empty else None
    if op.full is None:
        return None
    if source is None:
        return "slow leaf" if op.full < _LEAF_FULL else None
    is_slower = source.full is not None and source.full - op.full > _APART
    return "slower" if is_slower else None
