"""Re-timing: every edge gets a lag, every point the latest of its sources plus lag.

An edge that bound keeps the lag it showed. One that did not bind is older than its target: its lag
is what would remain of it had nothing else been in the way. Nothing gets more than it showed, so
unchanged lags give back every time exactly.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from . import path_limits as limits
from .path_edges import Edge, Kind, Role
from .path_events import EventClass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .path_graph import Graph
    from .path_windows import Window

WORK = frozenset(
    {
        Kind.OPERATOR,
        Kind.RUNTIME,
        Kind.HOST_GAP,
        Kind.DATA_LOADING,
        Kind.KERNEL,
        Kind.COPY,
        Kind.COMMUNICATION,
    }
)
"""What a change without a kind is about: a kernel made faster is not launched faster."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Multiplies the time of what is of a kind and has a matching name; both may be left open."""

    by: Fraction | float
    kind: str | None = None
    matching: str | None = None


@dataclass(frozen=True, kw_only=True)
class Drop:
    """Lets it take no time; what depends on it still depends on it."""

    kind: str | None = None
    matching: str | None = None


@dataclass(frozen=True, kw_only=True)
class RemoveWait:
    """Lets calls (``sync_return``, ``queue_full``) or work (``event_wait``) no longer wait."""

    kind: str = Kind.SYNC_RETURN
    matching: str | None = None


Change = Scale | Drop | RemoveWait


@dataclass(frozen=True)
class Timeline:
    """The time of every point and the number of the edge that binds it."""

    times_ns: list[int]
    binding: list[int | None]


def lags_ns(graph: Graph) -> list[int]:
    """Give the lag of every edge: what it adds to its source at the least."""
    typical = _typical_latencies_ns(graph)
    return [_lag_ns(graph, number, typical) for number in range(len(graph.edges))]


def _lag_ns(graph: Graph, number: int, typical: dict[Role, int]) -> int:
    edge = graph.edges[number]
    binding = _binding_edge(graph, edge.target)
    arriving = _on_the_way(graph, edge.target, typical)
    if edge is arriving:
        return _gap_ns(graph, edge)
    if edge is binding:
        return typical[edge.role] if arriving else _gap_ns(graph, edge)
    if edge.role in {Role.THREAD_ORDER, Role.DEVICE_WORK, Role.OVERLAP_TAIL}:
        if binding.role is Role.HANDOVER:
            return 0
        return graph.points.time_ns(edge.target) - graph.points.finished_ns(binding)
    return min(_gap_ns(graph, edge), typical.get(edge.role, 0))


def _on_the_way(graph: Graph, point: int, typical: dict[Role, int]) -> Edge | None:
    """Find the launch that was on the way when what bound a point was over."""
    binding, *others = [graph.edges[number] for number in graph.incoming[point]]
    may_share = binding.role in {Role.STREAM_ORDER, Role.EVENT_WAIT}
    if not may_share or not 0 < typical[binding.role] < _gap_ns(graph, binding) // 2:
        return None
    launches = [edge for edge in others if edge.role in {Role.LAUNCH, Role.LAUNCH_INSIDE}]
    near = (edge for edge in launches if _gap_ns(graph, edge) <= limits.UNDISTURBED_NS)
    return next(near, None)


def _binding_edge(graph: Graph, point: int) -> Edge:
    number = graph.binding[point]
    if number is None:
        message = f"nothing leads to point {point}"
        raise LookupError(message)
    return graph.edges[number]


def _gap_ns(graph: Graph, edge: Edge) -> int:
    return graph.points.time_ns(edge.target) - graph.points.time_ns(edge.source)


def _typical_latencies_ns(graph: Graph) -> dict[Role, int]:
    """Give for each role the low percentile of what its edges took where they bound.

    Where something else finished shortly before, the gap may be longer than the latency: of roles
    that bound only so, the shortest gap counts, of whatever edge.
    """
    gaps_ns: dict[Role, list[int]] = defaultdict(list)
    alone_ns: dict[Role, list[int]] = defaultdict(list)
    for numbers in graph.incoming:
        edges = [graph.edges[number] for number in numbers]
        for edge in edges[:1]:
            gaps_ns[edge.role].append(_gap_ns(graph, edge))
            before_ns = graph.points.finished_ns(edge) - limits.UNDISTURBED_NS
            if all(graph.points.finished_ns(next_) <= before_ns for next_ in edges[1:2]):
                alone_ns[edge.role].append(_gap_ns(graph, edge))
    least_ns = {
        role: min(_gap_ns(graph, edge) for edge in graph.edges if edge.role is role)
        for role in gaps_ns
    }
    return least_ns | {
        role: sorted(gaps)[(len(gaps) - 1) * limits.TYPICAL_PERCENT // 100]
        for role, gaps in alone_ns.items()
    }


def retime(
    graph: Graph, lags: Sequence[int], changes: Sequence[Change], from_ns: int | None = None
) -> Timeline:
    """Compute all times anew, in the order of the points; those without edges keep theirs.

    Where a window begins at a time, what was until then stays, and what came later still does.
    """
    lags, detached = _changed(graph, lags, changes, from_ns)
    times_ns = [point.time_ns for point in graph.points.points]
    binding: list[int | None] = [None] * len(times_ns)
    for point in graph.order:
        numbers = [number for number in graph.incoming[point] if not detached[number]]
        if not numbers:
            continue
        reached = {
            number: times_ns[graph.edges[number].source] + lags[number] for number in numbers
        }
        times_ns[point] = max(reached.values())
        reaching = [number for number in numbers if reached[number] == times_ns[point]]
        reaching += [it for it in numbers if _shows_as_much(graph, it, lags, times_ns)]
        binding[point] = min(reaching, key=lambda number: _binding_order(graph, number, times_ns))
        if from_ns is not None and graph.points.time_ns(point) > from_ns:
            times_ns[point] = max(from_ns, times_ns[point])
    return Timeline(times_ns, binding)


def _shows_as_much(graph: Graph, number: int, lags: Sequence[int], times_ns: Sequence[int]) -> bool:
    """Say whether what bound a point shows what it did, though its lag may be less."""
    edge = graph.edges[number]
    is_bound = number == graph.binding[edge.target] and lags[number] > 0
    shown_ns = times_ns[edge.source] + _gap_ns(graph, edge)
    return is_bound and shown_ns == times_ns[edge.target]


def _binding_order(graph: Graph, number: int, times_ns: Sequence[int]) -> tuple[int, object]:
    """Order edges as in the observed graph, by the new times."""
    edge = graph.edges[number]
    finished_ns = times_ns[edge.target if edge.role.is_inside else edge.source]
    return (-finished_ns, graph.points.binding_order(edge)[1:])


def _changed(
    graph: Graph, lags: Sequence[int], changes: Sequence[Change], from_ns: int | None
) -> tuple[list[int], list[bool]]:
    factors = [Fraction(1)] * len(graph.edges)
    detached = [False] * len(graph.edges)
    for change in changes:
        selected = _selection(graph, change)
        for number, edge in enumerate(graph.edges):
            if selected(edge):
                if isinstance(change, RemoveWait):
                    detached[number] = True
                else:
                    factors[number] *= _factor(change)
    scaled = []
    for number, (edge, lag, factor) in enumerate(zip(graph.edges, lags, factors, strict=True)):
        source_ns, target_ns = (graph.points.time_ns(it) for it in (edge.source, edge.target))
        if from_ns is not None and target_ns <= from_ns:
            scaled.append(lag)
            detached[number] = False
        elif from_ns is not None and source_ns < from_ns:
            passed_ns = min(lag, from_ns - source_ns)
            scaled.append(passed_ns + round((lag - passed_ns) * factor))
        else:
            scaled.append(round(lag * factor))
    return scaled, detached


def _factor(change: Scale | Drop) -> Fraction:
    return Fraction(str(change.by)) if isinstance(change, Scale) else Fraction(0)


def _selection(graph: Graph, change: Change) -> Callable[[Edge], bool]:
    """Select edges by kind and name: of the event whose time it is, or of the one that waits."""
    pattern = re.compile(change.matching or "")

    def takes_time(edge: Edge) -> bool:
        if edge.kind not in ({change.kind} if change.kind else WORK):
            return False
        if change.matching is None:
            return True
        return edge.event is not None and bool(pattern.search(edge.event.name))

    def waits(edge: Edge) -> bool:
        waiter = graph.points.points[edge.target].event
        return edge.role.waits == change.kind and bool(pattern.search(waiter.name))

    return waits if isinstance(change, RemoveWait) else takes_time


def start_of_window_ns(window: Window, times_ns: Sequence[int]) -> int:
    """Find where a window begins in new times."""
    if window.openers:
        return max(times_ns[point] for point in window.openers)
    return window.start_ns


def makespan_ns(graph: Graph, window: Window, times_ns: Sequence[int]) -> int:
    """Measure the window in new times, to the last of all that may end it."""
    observed_ns = [point.time_ns for point in graph.points.points]
    last_observed_ns = max(
        _cut_end_ns(graph, window, end, observed_ns) for end in window.candidates
    )
    last_ns = max(_cut_end_ns(graph, window, end, times_ns) for end in window.candidates)
    end_ns = last_ns + window.end_ns - last_observed_ns
    return max(0, end_ns - start_of_window_ns(window, times_ns))


def _cut_end_ns(graph: Graph, window: Window, end: int, times_ns: Sequence[int]) -> int:
    """Give when work ends, as far as it lies inside the window: of a kernel in proportion, on a
    thread in proportion to what happens around the border.
    """
    points = graph.points
    if points.time_ns(end) <= window.end_ns:
        return times_ns[end]
    event = points.points[end].event
    source, target = points.start(event), end
    if event.event_class is not EventClass.DEVICE:
        of_thread = [
            point
            for point in graph.order
            if points.points[point].event.lane == event.lane
            and points.points[point].event.event_class is not EventClass.DEVICE
        ]
        source = [point for point in of_thread if points.time_ns(point) <= window.end_ns][-1]
        target = next(point for point in of_thread if points.time_ns(point) > window.end_ns)
    observed_ns = [points.time_ns(source), points.time_ns(target)]
    moved_ns = [times_ns[source], times_ns[target]]
    if not window.openers:
        observed_ns[0] = max(observed_ns[0], window.start_ns)
        moved_ns[0] = max(moved_ns[0], window.start_ns)
    whole_ns = observed_ns[1] - observed_ns[0]
    inside_ns = (window.end_ns - observed_ns[0]) * max(0, moved_ns[1] - moved_ns[0]) // whole_ns
    return moved_ns[0] + inside_ns


def slack_by_row_ns(graph: Graph, end_point: int) -> dict[int, int | None]:
    """Give for every row by how much its event's time could grow without moving the end point.

    That is the least of what its end could be later and of what each edge that is its time could
    take longer.
    """
    latest, lags = _latest_ns(graph, end_point), _shown_lags_ns(graph)
    slack: dict[int, list[int]] = {event.row: [] for event in graph.trace.events}
    for event in graph.trace.events:
        end = graph.points.end(event)
        at_latest = latest[end]
        if at_latest is not None:
            slack[event.row].append(at_latest - graph.points.time_ns(end))
    for number, edge in enumerate(graph.edges):
        at_latest = latest[edge.target]
        if edge.event and at_latest is not None:
            left_ns = at_latest - graph.points.time_ns(edge.source) - lags[number]
            slack[edge.event.row].append(left_ns)
    return {row: min(its, default=None) for row, its in slack.items()}


def _shown_lags_ns(graph: Graph) -> list[int]:
    """Give the lags, where binding edges keep all that they show."""
    lags = lags_ns(graph)
    for number in graph.binding:
        if number is not None:
            lags[number] = _gap_ns(graph, graph.edges[number])
    return lags


def _latest_ns(graph: Graph, end_point: int) -> list[int | None]:
    """Give for every point when it may come at the latest without moving the end point."""
    latest_ns: list[int | None] = [None] * len(graph.points.points)
    latest_ns[end_point] = graph.points.time_ns(end_point)
    lags = _shown_lags_ns(graph)
    for point in reversed(graph.order):
        point_latest_ns = latest_ns[point]
        if point_latest_ns is None:
            continue
        for number in graph.incoming[point]:
            source = graph.edges[number].source
            source_latest_ns = point_latest_ns - lags[number]
            known_ns = latest_ns[source]
            if known_ns is None or source_latest_ns < known_ns:
                latest_ns[source] = source_latest_ns
    return latest_ns
