"""What a profiler fails to write down, though it happened."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .program import Backward, Busy, Call, Frame, Launch, Replay, Synchronize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .program import Item, Program
    from .timeline import Activity, Timeline


@dataclass(frozen=True, slots=True)
class Losses:
    """What is missing from a trace, as shares of what there was.

    Parameters
    ----------
    launches
        Of the calls that launched one GPU activity; the work itself is there.
    kernels
        Of all kernels; the calls that launched them are there.
    graph_nodes
        Of the nodes of graphs, other ones in every replay.
    hidden_nodes
        Of the nodes of graphs, the same in every replay.
    buffer
        A stretch of the run, from and to, of which no work of devices is there.
    blocks
        Of the run, in stretches of which neither launches nor work of devices are there.
    """

    launches: float = 0.0
    kernels: float = 0.0
    graph_nodes: float = 0.0
    hidden_nodes: float = 0.0
    buffer: tuple[float, float] | None = None
    blocks: float = 0.0


N_BLOCKS = 20


def hide(timeline: Timeline, losses: Losses, seed: int) -> None:
    """Mark what is not recorded: what is lost, and what began before the profiler started."""
    for activity in timeline.activities:
        if activity.start.time_ns < timeline.recorded_from_ns:
            activity.is_recorded = False
        elif activity.is_work:
            activity.is_recorded = not _is_work_lost(activity, losses, seed)
        elif len(activity.works) == 1:
            activity.is_recorded = not _drawn(losses.launches, seed, "launch", activity)
    if losses.buffer is not None:
        _hide_buffer(timeline, losses.buffer)
    if losses.blocks:
        _hide_blocks(timeline, losses.blocks, seed)


def _is_work_lost(work: Activity, losses: Losses, seed: int) -> bool:
    if len(work.launched_by.works) == 1:
        return work.category == "kernel" and _drawn(losses.kernels, seed, "kernel", work)
    return _drawn(losses.graph_nodes, seed, "node", work) or (
        random.Random(f"{seed} hidden {work.place.part}").random() < losses.hidden_nodes  # noqa: S311
    )


def _drawn(share: float, seed: int, what: str, activity: Activity) -> bool:
    return share > 0 and random.Random(f"{seed} {what} {activity.place}").random() < share  # noqa: S311


def _hide_buffer(timeline: Timeline, buffer: tuple[float, float]) -> None:
    works = [activity for activity in timeline.activities if activity.is_work]
    first_ns = min(work.start.time_ns for work in works)
    span_ns = max(work.end.time_ns for work in works) - first_ns
    begin_ns, end_ns = (first_ns + share * span_ns for share in buffer)
    for work in works:
        if begin_ns <= work.end.time_ns < end_ns:
            work.is_recorded = False


def _hide_blocks(timeline: Timeline, share: float, seed: int) -> None:
    """Hide launches and work that end in some of the equal stretches of a run."""
    ends_ns = [activity.end.time_ns for activity in timeline.activities]
    first_ns, last_ns = min(ends_ns), max(ends_ns) + 1
    dice = random.Random(f"{seed} blocks")  # noqa: S311
    is_lost = [dice.random() < share for _ in range(N_BLOCKS)]
    for activity in timeline.activities:
        block = N_BLOCKS * (activity.end.time_ns - first_ns) // (last_ns - first_ns)
        if is_lost[block] and (activity.is_work or activity.works):
            activity.is_recorded = False


# Plants what a profiler costs: host time around every event, by its class.


# Of the cost of an event, this part lies before its start; the rest after its end.
_BEFORE_PERCENT = 75


@dataclass(frozen=True, slots=True)
class PlantedCosts:
    """What recording one event of each class costs, in ns."""

    operator: int
    call: int
    annotation: int
    python: int = 0


def with_overhead(program: Program, costs: PlantedCosts) -> Program:
    """Return the program as it runs under a profiler that costs this much."""
    helpers = tuple(tuple(_planted(helper, costs)) for helper in program.helpers)
    return replace(program, main=tuple(_planted(program.main, costs)), helpers=helpers)


def _planted(items: Iterable[Item], costs: PlantedCosts) -> Iterator[Item]:
    for item in items:
        inner = item
        if isinstance(item, Frame | Backward):
            inner = replace(item, body=tuple(_planted(item.body, costs)))
        cost_ns = _cost_ns(item, costs)
        before_ns = cost_ns * _BEFORE_PERCENT // 100
        yield from (Busy(before_ns), inner, Busy(cost_ns - before_ns)) if cost_ns else (inner,)


def _cost_ns(item: Item, costs: PlantedCosts) -> int:
    if isinstance(item, Frame):
        of_frames = {
            "cpu_op": costs.operator,
            "user_annotation": costs.annotation,
            "python_function": costs.python,
        }
        return of_frames.get(item.category, 0)
    return costs.call if isinstance(item, Call | Launch | Replay | Synchronize) else 0
