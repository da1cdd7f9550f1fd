"""Which operator holds a data pipeline up: MindSpore's rules over CPU use and queues.

The thresholds are MindSpore's. Operators that only pass rows on (Zip, Repeat, ...) have no queue
and no workers of their own and are looked through.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["PASSING", "Bottleneck", "find_bottleneck"]

PASSING: Final = frozenset(
    ("Barrier", "Concat", "EpochCtrl", "Rename", "Repeat", "Shuffle", "Skip", "Take", "Zip")
)
_BUSY, _IDLE = 0.75, 0.20
_LEAF_FULL: Final = 0.50
_EMPTY: Final = 0.60
_APART: Final = 0.50
_INPUT_FULL: Final = 0.10


class _Op(Protocol):
    op_id: int
    name: str
    n_workers: int | None
    children: tuple[int, ...]
    queue_mean: float | None
    queue_share: float | None
    empty_share: float | None
    cpu_share: float | None

    @property
    def label(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """What the rules say; `operator` is None where they name no bottleneck."""

    operator: str | None
    suggestion: str | None
    cpu: tuple[str, ...]
    queues: tuple[str, ...]


def find_bottleneck(operators: Mapping[int, _Op]) -> Bottleneck:
    """Apply the rules; the CPU use of every operator must be known.

    Where several operators are named, the one nearest to the root is the bottleneck.
    """
    at_work = [op for op in operators.values() if op.name not in PASSING]
    suggested = None
    for op in at_work:
        suggestion = _suggestion(op, operators)
        if suggestion is not None:
            suggested = (op.label, suggestion)
            break
    operator, text = suggested or (None, None)
    cpu = tuple(sentence for op in at_work for sentence in _cpu(op))
    queues = tuple(sentence for op in at_work for sentence in _queues(op, operators))
    return Bottleneck(operator, text, cpu, queues)


def _per_worker(op: _Op) -> float | None:
    return op.cpu_share / op.n_workers if op.n_workers and op.cpu_share is not None else None


def _input(op: _Op, operators: Mapping[int, _Op]) -> _Op | None:
    """Find the operator whose queue it reads from, through those that have none."""
    seen = {op.op_id}
    while op.children:
        child = operators.get(op.children[0])
        if child is None or child.op_id in seen:
            return None
        if child.queue_mean is not None:
            return child
        seen.add(child.op_id)
        op = child
    return None


def _suggestion(op: _Op, operators: Mapping[int, _Op]) -> str | None:
    use = _per_worker(op)
    if use is None or op.name == "DeviceQueue":
        return None
    if use > _BUSY:
        return f"its workers use {use:.0%} of a core each: try more than {op.n_workers} workers"
    source = _input(op, operators)
    if use >= _IDLE or source is None or source.queue_share is None:
        return None
    is_behind = op.queue_share is not None and op.queue_share - source.queue_share > _APART
    if source.queue_share < _INPUT_FULL or is_behind:
        return f"its workers use {use:.0%} of a core each and wait: try a larger prefetch_size"
    return None


def _cpu(op: _Op) -> Iterator[str]:
    use = _per_worker(op)
    if use is None:
        return
    if use > _BUSY:
        yield f"{op.label}: {use:.0%} of a core per worker; more than {op.n_workers} may help"
    elif use < _IDLE and (op.n_workers or 0) > 1:
        yield f"{op.label}: {use:.0%} of a core per worker; {op.n_workers} workers may be too many"


def _queues(op: _Op, operators: Mapping[int, _Op]) -> Iterator[str]:
    if op.name == "Batch":
        return
    source = _input(op, operators)
    if op.name == "DeviceQueue" and source is not None:
        if source.empty_share is not None and source.empty_share > _EMPTY:
            share = f"{source.empty_share:.0%}"
            yield f"{op.label}: its input queue is empty {share} of the time, the device waits then"
    elif op.queue_share is None:
        return
    elif source is None:
        if op.queue_share < _LEAF_FULL:
            full = f"{op.queue_share:.0%}"
            yield f"{op.label}: its output queue is {full} full; more workers may help"
    elif source.queue_share is not None and source.queue_share - op.queue_share > _APART:
        yield (
            f"{op.label}: its input queue is {source.queue_share:.0%} full and its output queue "
            f"{op.queue_share:.0%}: it is slower than {source.label}"
        )
