"""The graph of a whole trace: points in an order that respects every edge, and what binds each."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from . import path_limits as limits
from .path_clocks import clock_shifts
from .path_devices import Devices, device_edges
from .path_edges import Edge, Points, Role
from .path_events import RawEvent, Trace, parse_trace
from .path_joint import joint_edges
from .path_threads import DATA_LOADING, handovers, thread_chains
from .path_waits import call_edges, recorded_stream_waits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@dataclass(frozen=True)
class Graph:
    """Points, edges, and for each point the number of the edge that binds it.

    ``order`` lists the points so that every edge leads onward in it. ``violations`` are the edges
    that would lead back in time and ``cut`` those that closed a circle of no length.
    """

    trace: Trace
    points: Points
    devices: Devices
    order: list[int]
    edges: list[Edge]
    incoming: list[list[int]]
    binding: list[int | None]
    violations: list[Edge]
    cut: list[Edge]
    counts: Counter[str]


def build_graph(events: Iterable[RawEvent], *, data_load: str = DATA_LOADING) -> Graph:
    """Build the graph of a whole trace; windows only choose an end in it."""
    events = list(events)
    trace = parse_trace(events)
    shifts = clock_shifts(trace, Devices(trace))
    trace = parse_trace(events, shifts)  # also without any: what was counted is forgotten
    points, devices = Points(trace.events), Devices(trace)
    chains = thread_chains(trace, points, data_load)
    waits = recorded_stream_waits(trace, points, devices)
    joint = list(joint_edges(trace, points, devices))
    trace.counts["joint_collectives"] = len(joint)
    edges = [
        *(edge for chain in chains.values() for edge in chain),
        *device_edges(trace, points, devices, waits),
        *call_edges(trace, points, devices),
        *joint,
        *handovers(trace, points, chains),
    ]
    violations = [edge for edge in edges if _length_ns(edge, points) < 0]
    order, cut = _without_circles([e for e in edges if _length_ns(e, points) >= 0], points)
    left_out = {*map(id, violations), *map(id, cut)}
    kept = sorted((e for e in edges if id(e) not in left_out), key=points.binding_order)
    incoming: list[list[int]] = [[] for _ in points.points]
    for number, edge in enumerate(kept):
        incoming[edge.target].append(number)
    return Graph(
        trace=trace,
        points=points,
        devices=devices,
        order=order,
        edges=kept,
        incoming=incoming,
        binding=[next(iter(numbers), None) for numbers in incoming],
        violations=violations,
        cut=cut,
        counts=_counts(trace, points, devices, violations, cut),
    )


def _length_ns(edge: Edge, points: Points) -> int:
    return points.time_ns(edge.target) - points.time_ns(edge.source)


def _counts(
    trace: Trace,
    points: Points,
    devices: Devices,
    violations: Sequence[Edge],
    cut: Sequence[Edge],
) -> Counter[str]:
    counts = trace.counts.copy()
    works = [work for stream in devices.streams.values() for work in stream.works]
    early_ns = [-_length_ns(edge, points) for edge in violations if edge.role is Role.LAUNCH]
    counts["unlinked_work"] = sum(devices.launches.call_of(work) is None for work in works)
    counts["clock_skew"] = len(early_ns)
    counts["large_clock_skew"] = sum(ns > limits.CLOCK_TOLERANCE_NS for ns in early_ns)
    counts["violation"] = len(violations)
    counts["circle"] = len(cut)
    counts["clock_shifts"] = len(trace.clock_shifts)
    return counts


def _without_circles(edges: Sequence[Edge], points: Points) -> tuple[list[int], list[Edge]]:
    """Order the points by time, those of one instant by the edges among them.

    Edges of one instant may close a circle; then its weakest is cut: what is only inferred, then
    launches, then waits, the order of a lane at last.
    """
    instant: dict[int, list[Edge]] = defaultdict(list)
    for edge in edges:
        if _length_ns(edge, points) == 0:
            instant[points.time_ns(edge.source)].append(edge)
    order: list[int] = []
    cut: list[Edge] = []
    for time_ns, numbers in groupby(range(len(points.points)), key=points.time_ns):
        order.extend(_order_of_instant(list(numbers), instant[time_ns], points, cut))
    return order, cut


def _order_of_instant(
    numbers: Sequence[int], edges: Sequence[Edge], points: Points, cut: list[Edge]
) -> Iterator[int]:
    waiting = Counter(edge.target for edge in edges)
    leaving: dict[int, list[Edge]] = defaultdict(list)
    for edge in edges:
        leaving[edge.source].append(edge)
    free = [number for number in numbers if not waiting[number]]  # sorted, hence a heap
    left = set(numbers)
    while left:
        if not free:
            weakest = _weakest_of_circle(left, leaving, points)
            cut.append(weakest)
            leaving[weakest.source].remove(weakest)
            released = [weakest]
        else:
            number = heapq.heappop(free)
            left.remove(number)
            yield number
            released = leaving[number]
        for edge in released:
            waiting[edge.target] -= 1
            if not waiting[edge.target]:
                heapq.heappush(free, edge.target)


def _weakest_of_circle(left: set[int], leaving: dict[int, list[Edge]], points: Points) -> Edge:
    closing = [
        edge
        for number in left
        for edge in leaving[number]
        if number in _reachable(edge.target, leaving)
    ]
    return max(
        closing, key=lambda edge: (edge.inferred, edge.role.tie_class, points.binding_order(edge))
    )


def _reachable(start: int, leaving: dict[int, list[Edge]]) -> set[int]:
    seen: set[int] = set()
    todo = [start]
    while todo:
        number = todo.pop()
        if number not in seen:
            seen.add(number)
            todo.extend(edge.target for edge in leaving[number])
    return seen
