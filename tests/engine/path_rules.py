"""A tiny trace, the graph that longpole makes of it, and the path through it.

Times are microseconds. A path is a list of (start, end, kind, name of the event).
"""

from collections import Counter
from dataclasses import dataclass

import longpole
from tiny_traces import US, launch, read

TWO_STREAMS = [launch(0, 2, 1), launch(11, 13, 2)]
"""Launches of two kernels."""


@dataclass(frozen=True)
class Edge:
    """An edge of the graph, with the name of its event."""

    kind: str
    role: str
    evidence: str
    name: str | None


@dataclass(frozen=True)
class Graph:
    """The edges of a trace, those that go back in time, and what was counted on the way."""

    edges: list[Edge]
    violations: list[Edge]
    counts: dict[str, int]

    def with_role(self, role: str) -> list[Edge]:
        """List the edges of a role, in the order of the graph."""
        return [edge for edge in self.edges if edge.role == role]

    def roles(self) -> Counter[str]:
        """Count the edges of each role."""
        return Counter(edge.role for edge in self.edges)


def graph_of(events):
    """Return the graph of a trace of events."""
    trace = read(events)
    path = trace.critical_path(whole=True)
    names = dict(trace.events.select("event", "name").iter_rows()) | {None: None}

    def edges_of(frame):
        columns = ["kind", "role", "evidence", "event"]
        return [Edge(*rest, names[event]) for *rest, event in frame.select(columns).iter_rows()]

    return Graph(edges_of(path.edges), edges_of(path.violations), path.counts)


def makespan_us(events, *changes):
    """Return how long the whole trace takes after some changes."""
    changed = read(events).critical_path(whole=True).what_if(list(changes))
    assert isinstance(changed, longpole.WhatIf)
    return changed.makespan_ns / US
