"""The naive twin of the critical path, by the definition in ``docs/path-rules.md``.

A list of Kineto events goes in; graph, window, path, slack, sync dependencies and what-if come out.
Nothing here is fast, and nothing is clever: the Rust core must give the same answers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from . import path_limits as limits
from .path_edges import Edge, Evidence, Kind
from .path_events import Event, RawEvent, read_events
from .path_graph import Graph, build_graph
from .path_retime import (
    Change,
    Drop,
    RemoveWait,
    Scale,
    Timeline,
    lags_ns,
    makespan_ns,
    retime,
    slack_by_row_ns,
    start_of_window_ns,
)
from .path_windows import (
    End,
    Window,
    annotation_window,
    between_window,
    last_point,
    step_window,
    whole_window,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = [
    "CriticalPath",
    "Drop",
    "Graph",
    "RawEvent",
    "RemoveWait",
    "Scale",
    "Segment",
    "SyncDependency",
    "WhatIf",
    "Window",
    "build_graph",
    "critical_path",
    "find_window",
    "read_events",
    "slack",
    "sync_dependencies",
    "what_if",
]


class Segment(NamedTuple):
    """A piece of the path; ``row`` is the position in the trace of the event it belongs to."""

    start_ns: int
    end_ns: int
    kind: str
    row: int | None
    evidence: str


@dataclass(frozen=True)
class CriticalPath:
    """Segments that tile the window, and the numbers of the edges they come from."""

    window: Window
    segments: list[Segment]
    edges: list[int]

    @property
    def length_ns(self) -> int:
        return sum(segment.end_ns - segment.start_ns for segment in self.segments)

    @property
    def ns_by_kind(self) -> Counter[str]:
        """Give the time of each kind, the greatest first."""
        total: Counter[str] = Counter()
        for segment in self.segments:
            total[segment.kind] += segment.end_ns - segment.start_ns
        return Counter(dict(total.most_common()))

    @property
    def inferred_ns(self) -> int:
        return sum(
            segment.end_ns - segment.start_ns
            for segment in self.segments
            if segment.evidence == Evidence.INFERRED
        )

    @property
    def unexplained_ns(self) -> int:
        return self.ns_by_kind[Kind.UNEXPLAINED] + self.ns_by_kind[Kind.GRAPH_GAP]

    @property
    def is_inconclusive(self) -> bool:
        numerator, denominator = limits.INCONCLUSIVE_SHARE
        return self.unexplained_ns * denominator > self.length_ns * numerator


def find_window(
    graph: Graph,
    *,
    step: int | str | None = None,
    annotation: str | None = None,
    instance: int = 0,
    between_ns: tuple[int, int] | None = None,
    end: End = "period",
) -> Window:
    """Choose the window of the whole trace, a step, an annotation or two times."""
    if step is not None:
        return step_window(graph, step, end)
    if annotation is not None:
        return annotation_window(graph, annotation, instance, end)
    if between_ns is not None:
        return between_window(graph, *between_ns)
    return whole_window(graph)


def critical_path(graph: Graph, window: Window | None = None) -> CriticalPath:
    """Walk back from the window's end, always along the edge that binds."""
    window = window or whole_window(graph)
    times_ns = [point.time_ns for point in graph.points.points]
    return _walk(graph, window, Timeline(times_ns, graph.binding))


def _walk(graph: Graph, window: Window, timeline: Timeline) -> CriticalPath:
    times_ns = timeline.times_ns
    edges: list[int] = []
    backward: list[Segment] = []
    point = window.end_point
    if times_ns[point] < window.end_ns:
        backward.append(_unknown(times_ns[point], window.end_ns, Kind.AFTER_LAST_EVENT))
    while times_ns[point] > window.start_ns:
        number = timeline.binding[point]
        if number is None:
            before = Kind.BEFORE_FIRST_EVENT
            backward.append(_unknown(window.start_ns, times_ns[point], before))
            break
        edge = graph.edges[number]
        edges.append(number)
        backward.append(_segment(edge, times_ns))
        point = edge.source
    clipped = _clipped(reversed(backward), window.start_ns, window.end_ns)
    return CriticalPath(window, list(_merged(clipped)), edges[::-1])


def _unknown(start_ns: int, end_ns: int, kind: Kind) -> Segment:
    return Segment(start_ns, end_ns, kind, None, Evidence.NONE)


def _segment(edge: Edge, times_ns: Sequence[int]) -> Segment:
    row = edge.event.row if edge.event else None
    return Segment(times_ns[edge.source], times_ns[edge.target], edge.kind, row, edge.evidence)


def _clipped(segments: Iterable[Segment], start_ns: int, end_ns: int) -> Iterator[Segment]:
    for segment in segments:
        clipped = segment._replace(
            start_ns=max(segment.start_ns, start_ns), end_ns=min(segment.end_ns, end_ns)
        )
        if clipped.start_ns < clipped.end_ns:
            yield clipped


def _merged(segments: Iterable[Segment]) -> Iterator[Segment]:
    """Join neighbours that differ in nothing but their times."""
    current: Segment | None = None
    for segment in segments:
        if current and current[2:] == segment[2:]:
            current = current._replace(end_ns=segment.end_ns)
            continue
        if current:
            yield current
        current = segment
    if current:
        yield current


def slack(graph: Graph, window: Window) -> dict[int, int | None]:
    """For all rows: how much longer the event might take without moving the window's end.

    None where nothing leads from the event to that end.
    """
    return slack_by_row_ns(graph, window.end_point)


@dataclass(frozen=True)
class SyncDependency:
    """Device work that a call or other device work had to wait for, or might have had to."""

    source: Event
    target: Event
    kind: str
    evidence: str
    waited: bool
    on_path: bool


def sync_dependencies(graph: Graph, path: CriticalPath) -> list[SyncDependency]:
    """List the waits inside the window of a path; ``waited`` where the wait bound its end."""
    on_path = set(path.edges)
    found = []
    for number, edge in enumerate(graph.edges):
        kind = edge.role.waits
        time_ns = graph.points.time_ns(edge.target)
        if kind and path.window.start_ns <= time_ns <= path.window.end_ns:
            found.append(
                SyncDependency(
                    source=graph.points.points[edge.source].event,
                    target=graph.points.points[edge.target].event,
                    kind=kind,
                    evidence=edge.evidence,
                    waited=graph.binding[edge.target] == number,
                    on_path=number in on_path,
                )
            )
    return sorted(found, key=lambda sync: (sync.target.rank, sync.source.rank))


@dataclass(frozen=True)
class WhatIf:
    """How long the window would take, and what it would then wait for, in the new times."""

    makespan_ns: int
    critical_path: CriticalPath


def what_if(graph: Graph, window: Window, changes: Sequence[Change] = ()) -> WhatIf:
    """Re-time the whole trace with some work changed and read the window off again."""
    from_ns = None if window.openers else window.start_ns
    timeline = retime(graph, lags_ns(graph), changes, from_ns)
    end_point = last_point(graph, window.candidates, timeline.times_ns)
    start_ns = start_of_window_ns(window, timeline.times_ns)
    length_ns = makespan_ns(graph, window, timeline.times_ns)
    moved = Window(
        start_ns=start_ns,
        end_ns=start_ns + length_ns,
        end_point=end_point,
        candidates=window.candidates,
        openers=window.openers,
    )
    return WhatIf(length_ns, _walk(graph, moved, timeline))
