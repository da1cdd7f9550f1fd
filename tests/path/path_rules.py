"""A tiny trace, and the path it must give: the naive twin gives it, and longpole the same.

Times are microseconds. A path is a list of (start, end, kind, name of the event).
"""

from collections import Counter

import longpole
from oracles.twin.path_twin import (
    Drop,
    RemoveWait,
    Scale,
    build_graph,
    critical_path,
    find_window,
    what_if,
)
from tiny_traces import US, launch, positions, read, segments

OURS = {Scale: longpole.Scale, Drop: longpole.Drop, RemoveWait: longpole.RemoveWait}
TWO_STREAMS = [launch(0, 2, 1), launch(11, 13, 2)]
"""Launches of two kernels."""


BEYOND_TWIN = (
    "graph_launches",
    "lost_copy_calls",
    "polling_loops",
    "queue_waits",
    "unrecorded_waits",
)
"""Counts of rules that the naive twin does not have: the simulator is their judge."""


def is_beyond_twin(path):
    """Whether a rule took part in a graph that the twin does not have."""
    return any(path.counts[name] for name in BEYOND_TWIN)


def graph_of(events):
    """Give the graph of the twin, which has the edges and the counts that longpole's has."""
    graph, trace = build_graph(events), read(events)
    path = trace.critical_path(whole=True)
    assert our_edges(path, path.edges, positions(trace)) == their_edges(graph, graph.edges)
    assert our_edges(path, path.violations, positions(trace)) == their_edges(
        graph, graph.violations
    )
    assert graph.counts.items() <= path.counts.items()
    return graph


def our_edges(path, edges, place):
    """Count longpole's edges by kind, role, evidence, row of the event, and their two times."""
    times = dict(path.nodes.select("node", "time_ns").iter_rows())
    columns = ["kind", "role", "evidence", "event", "source", "target"]
    return Counter(
        (kind, role, evidence, place[event], times[source], times[target])
        for kind, role, evidence, event, source, target in edges.select(columns).iter_rows()
    )


def their_edges(graph, edges, base_ns=0):
    """Count the twin's edges in the same way; its clock is ahead by a base."""

    def time_ns(point):
        return graph.points.time_ns(point) - base_ns

    return Counter(
        (
            edge.kind,
            edge.role,
            edge.evidence,
            edge.event and edge.event.row,
            time_ns(edge.source),
            time_ns(edge.target),
        )
        for edge in edges
    )


def path_of(events, **window):
    graph = graph_of(events)
    path = critical_path(graph, find_window(graph, **window))
    trace = read(events)
    ours = {name.removesuffix("_ns"): value for name, value in window.items()}
    assert segments(trace, trace.critical_path(**(ours or {"whole": True}))) == path.segments
    return named(events, path)


def named(events, path):
    return [
        (s.start_ns / US, s.end_ns / US, s.kind, None if s.row is None else events[s.row]["name"])
        for s in path.segments
    ]


def makespan_us(events, *changes):
    graph = build_graph(events)
    makespan_ns = what_if(graph, find_window(graph), changes).makespan_ns
    ours = [OURS[type(change)](**vars(change)) for change in changes]
    assert read(events).critical_path(whole=True).what_if(ours).makespan_ns == makespan_ns
    return makespan_ns / US
