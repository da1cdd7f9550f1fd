"""A tiny trace, and the path it must give: the naive twin gives it, and longpole the same.

Times are microseconds. A path is a list of (start, end, kind, name of the event).
"""

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
from tiny_traces import US, launch, read, segments

OURS = {Scale: longpole.Scale, Drop: longpole.Drop, RemoveWait: longpole.RemoveWait}
TWO_STREAMS = [launch(0, 2, 1), launch(11, 13, 2)]
"""Launches of two kernels."""


def path_of(events, **window):
    graph = build_graph(events)
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
