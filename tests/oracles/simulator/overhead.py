"""Plants what a profiler costs: host time around every event, by its class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .program import Backward, Busy, Call, Frame, Launch, Replay, Synchronize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .program import Item, Program

__all__ = ["PlantedCosts", "with_overhead"]

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
