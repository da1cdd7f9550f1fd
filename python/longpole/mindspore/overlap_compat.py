"""Computation and communication side by side, as MindSpore merges them for its timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from longpole.mindspore.output import csv_text

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PER_NS", "Item", "merged", "overlap"]

_OVERLAP: Final = 12_000
_LANES: Final = {
    "receive_op_not_overlapped": (7997, _OVERLAP),
    "exclude_receive_op": (7998, _OVERLAP),
    "computation_op": (7999, _OVERLAP),
    "communication_not_overlapped": (8000, _OVERLAP),
    "communication": (8001, _OVERLAP),
    "free_time": (8002, _OVERLAP),
}
PER_NS: Final = 1e-3
"""Microseconds in a nanosecond, as MindSpore multiplies."""


class Item(NamedTuple):
    """A row of MindSpore's timeline list: its start in ns (as text or number), duration in us."""

    name: str
    lane: str | int
    start: Any
    duration: Any
    more: tuple[Any, ...] = ()


class _Merged(NamedTuple):
    parts: list[tuple[float, float]]
    gaps: list[Item]
    bars: list[Item]


def merged(runs: Sequence[Item], name: str, *, gaps: bool = False) -> _Merged:
    """Join what touches; with `gaps`, the parts given are what is between."""
    edges: list[float] = []
    for run in runs:
        start = float(run.start)
        end = start + float(run.duration) / PER_NS
        if not edges or start > edges[-1]:
            edges += [start, end]
        else:
            edges[-1] = max(edges[-1], end)
    bars = _items(name, edges)
    if gaps:
        edges = edges[1:-1]
    parts = list(zip(edges[::2], edges[1::2], strict=True))
    return _Merged(parts, _items(name, edges), bars)


def _items(name: str, edges: Sequence[float]) -> list[Item]:
    lane, process = _LANES[name]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return [Item(name, lane, start, (end - start) * PER_NS, (process,)) for start, end in pairs]


def overlap(
    runs: Sequence[Item],
    kernels: Sequence[Item],
    collectives: Sequence[Item],
    steps: Sequence[Item],
) -> tuple[list[Item], str]:
    """Give the rows about communication, and the text of the cluster file."""
    communication = merged(collectives, "communication")
    computing = sorted([*runs, *kernels], key=lambda item: float(item.start))
    compute = merged(computing, "computation_op", gaps=True)
    alone = _common(compute.parts, communication.parts, "communication_not_overlapped")
    every = sorted([*computing, *collectives], key=lambda item: float(item.start))
    free = merged(every, "free_time", gaps=True)
    receives = [each for each in [*runs, *collectives] if "Receive-op" in each.name]
    receives.sort(key=lambda item: float(item.start))
    others = [each for each in collectives if "Receive-op" not in each.name]
    receive_alone = _common(
        compute.parts, merged(receives, "communication").parts, "receive_op_not_overlapped"
    )
    other_alone = _common(
        compute.parts, merged(others, "communication").parts, "exclude_receive_op"
    )
    cluster = _cluster_text(steps, alone, receive_alone if receives else None, other_alone)
    return [*alone, *compute.bars, *communication.bars, *free.gaps], cluster


def _common(
    first: Sequence[tuple[float, float]], second: Sequence[tuple[float, float]], name: str
) -> list[Item]:
    lane, process = _LANES[name]
    found, a, b = [], 0, 0
    while a < len(first) and b < len(second):
        start, end = max(first[a][0], second[b][0]), min(first[a][1], second[b][1])
        if start < end:
            found.append(Item(name, lane, start, (end - start) * PER_NS, (process,)))
        if first[a][1] >= second[b][1]:
            b += 1
        else:
            a += 1
    return found


def _cluster_text(
    steps: Sequence[Item],
    alone: Sequence[Item],
    receives: Sequence[Item] | None,
    others: Sequence[Item],
) -> str:
    waits = _by_step(alone, steps)
    columns = {
        "computation_time": [s.duration - w for s, w in zip(steps, waits, strict=False)],
        "communication_alone_time": waits,
    }
    if receives is not None:
        apart = _by_step(receives, steps)
        columns["stage_time"] = [s.duration - w for s, w in zip(steps, apart, strict=False)]
        columns["receive_alone_time"] = apart
        columns["collective_communication_alone_time"] = _by_step(others, steps)
    if len(steps) > 1:
        for values in columns.values():
            values.append(sum(values[1:]) / (len(steps) - 1))
    rows = zip(*columns.values(), strict=False)
    return csv_text([list(columns), *([round(value / 1e3, 4) for value in row] for row in rows)])


def _by_step(parts: Sequence[Item], steps: Sequence[Item]) -> list[float]:
    sums, place, current = [], 0, 0.0
    end = steps[0].start + steps[0].duration * 1e3
    for part in parts:
        if part.start > end:
            sums.append(current)
            place += 1
            if place >= len(steps):
                break
            end = steps[place].start + steps[place].duration * 1e3
            current = 0.0
        current += part.duration
    return [*sums, current]
